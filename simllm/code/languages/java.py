"""Rules that find documented Java methods: a Javadoc comment documents the method or constructor after it."""

from simllm.code.languages.comment_marks import strip_block_marks
from simllm.code.languages.find_doc_comments import block_comments
from simllm.code.languages.language import Language
from simllm.code.languages.syntax_node_text import field
from simllm.code.languages.syntax_tree_cursor import NodePath, path_to_type

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
