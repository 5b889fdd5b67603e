"""PHP: a PHPDoc comment before a function or method."""

from simllm.code.languages.base import Language, beginning, field
from simllm.code.languages.comment_marks import blocks, undress_block
from simllm.code.languages.node_path import NodePath

_FUNCTIONS = frozenset({"function_definition", "method_declaration"})


def _function(path: NodePath) -> NodePath | None:
    return beginning(path, _FUNCTIONS)


LANGUAGE = Language(
    grammars=(("tree_sitter_php", "language_php"),),
    places=blocks,
    function=_function,
    undress=undress_block,
    name=lambda node: field(node, "name"),
    classes=frozenset(
        {"class_declaration", "enum_declaration", "interface_declaration", "trait_declaration"}
    ),
)
