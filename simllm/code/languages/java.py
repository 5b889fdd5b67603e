"""Rules that find documented Java methods: a Javadoc comment documents the method or constructor after it."""

from simllm.code.languages.cursor import NodePath, path_to_type
from simllm.code.languages.language import Language, block_comments, field_text, strip_block_marks

_FUNCTIONS = frozenset(
    {
        "method_declaration",
        "constructor_declaration",
        "compact_constructor_declaration",
        "annotation_type_element_declaration",
    }
)


def _function(path: NodePath) -> NodePath | None:
    return path_to_type(path, _FUNCTIONS)


LANGUAGE = Language(
    grammars=(("tree_sitter_java", "language"),),
    places=block_comments,
    function=_function,
    strip_marks=strip_block_marks,
    name=lambda node: field_text(node, "name"),
    classes=frozenset(
        {
            "annotation_type_declaration",
            "class_declaration",
            "enum_declaration",
            "interface_declaration",
            "record_declaration",
        }
    ),
)
