"""Java: a Javadoc comment before a method or constructor."""

from simllm.code.languages.base import Language, beginning, field
from simllm.code.languages.comment_marks import blocks, undress_block
from simllm.code.languages.node_path import NodePath

_FUNCTIONS = frozenset(
    {
        "method_declaration",
        "constructor_declaration",
        "compact_constructor_declaration",
        "annotation_type_element_declaration",
    }
)


def _function(path: NodePath) -> NodePath | None:
    return beginning(path, _FUNCTIONS)


LANGUAGE = Language(
    grammars=(("tree_sitter_java", "language"),),
    places=blocks,
    function=_function,
    undress=undress_block,
    name=lambda node: field(node, "name"),
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
