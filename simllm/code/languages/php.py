"""Rules that find documented PHP functions: a PHPDoc comment documents the function or method after it."""

from simllm.code.languages.comment_marks import strip_block_marks
from simllm.code.languages.find_doc_comments import block_comments
from simllm.code.languages.language import Language
from simllm.code.languages.syntax_node_text import field
from simllm.code.languages.syntax_tree_cursor import NodePath, path_to_type

_FUNCTIONS = frozenset({"function_definition", "method_declaration"})


def _function(path: NodePath) -> NodePath | None:
    return path_to_type(path, _FUNCTIONS)


LANGUAGE = Language(
    grammars=(("tree_sitter_php", "language_php"),),
    places=block_comments,
    function=_function,
    strip_marks=strip_block_marks,
    name=lambda node: field(node, "name"),
    classes=frozenset(
        {"class_declaration", "enum_declaration", "interface_declaration", "trait_declaration"}
    ),
    tag=b"<?",
    grammar_without_tag=("tree_sitter_php", "language_php_only"),
)
