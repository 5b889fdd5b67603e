"""Rules that find documented PHP functions: a PHPDoc comment documents the function or method after it."""

from simllm.code.languages.cursor import NodePath, path_to_type
from simllm.code.languages.language import Language, block_comments, field_text, strip_block_marks

_FUNCTIONS = frozenset({"function_definition", "method_declaration"})


def _function(path: NodePath) -> NodePath | None:
    return path_to_type(path, _FUNCTIONS)


LANGUAGE = Language(
    grammars=(("tree_sitter_php", "language_php"),),
    places=block_comments,
    function=_function,
    strip_marks=strip_block_marks,
    name=lambda node: field_text(node, "name"),
    classes=frozenset(
        {"class_declaration", "enum_declaration", "interface_declaration", "trait_declaration"}
    ),
    tag=b"<?",
    grammar_without_tag=("tree_sitter_php", "language_php_only"),
)
