"""JavaScript: a JSDoc comment before a function, a method or what a function is assigned to."""

from __future__ import annotations

import re

from tree_sitter import Node

from simllm.code.languages.base import Language, beginning, field, text
from simllm.code.languages.comment_marks import blocks, undress_block
from simllm.code.languages.node_path import NodePath

_NAMED = frozenset(
    {
        "abstract_method_signature",
        "function_declaration",
        "function_signature",
        "generator_function_declaration",
        "method_definition",
        "method_signature",
    }
)
_ANONYMOUS = frozenset({"arrow_function", "function_expression", "generator_function"})

# What stands around a function -> the field that leads to it.
_AROUND = {
    "ambient_declaration": "",
    "assignment_expression": "right",
    "export_statement": "declaration",
    "expression_statement": "",
    "field_definition": "value",
    "lexical_declaration": "",
    "pair": "value",
    "public_field_definition": "value",
    "variable_declaration": "",
    "variable_declarator": "value",
}
_DECORATOR = frozenset({"decorator"})
_OPENS = frozenset({*_NAMED, *_AROUND}) - {"assignment_expression", "variable_declarator"}


def _function(path: NodePath) -> NodePath | None:
    """Return the path to the declaration that begins here, past its decorators, if it holds a function."""
    found = beginning(path, _OPENS) or beginning(path, _DECORATOR)
    if not found:
        return None
    declaration: Node | None = found[-1]
    while declaration and declaration.type == "decorator":
        declaration = declaration.next_named_sibling
    return [*found[:-1], declaration] if declaration and _inside(declaration) else None


def _inside(node: Node) -> Node | None:
    """Return the function inside a declaration, None if there is none."""
    here: Node | None = node
    while here and here.type in _AROUND:
        by = _AROUND[here.type]
        if here.type == "export_statement":
            here = here.child_by_field_name("declaration") or here.child_by_field_name("value")
        else:
            here = here.child_by_field_name(by) if by else here.named_child(0)
    return here if here and here.type in _NAMED | _ANONYMOUS else None


def _name(node: Node) -> str:
    here: Node | None = node
    while here and here.type not in _NAMED:
        for by in ("left", "key", "property", "name"):
            if child := here.child_by_field_name(by):
                return re.sub(r"^(?:module\.)?exports\.|\bthis\.|\bprototype\.|[\"']", "", text(child))
        inner = here.child_by_field_name("declaration") or here.named_child(0)
        here = inner if here.type in _AROUND else None
    return field(here, "name") if here else ""


_CLASSES = frozenset(
    {"abstract_class_declaration", "class", "class_declaration", "interface_declaration", "module"}
)


def language(*grammars: tuple[str, str]) -> Language:
    """Return JavaScript or TypeScript, which differ in their grammar alone."""
    return Language(
        grammars=grammars,
        places=blocks,
        function=_function,
        undress=undress_block,
        name=_name,
        classes=_CLASSES,
    )


# Where the first finds errors, the source may be Flow, which looks like TypeScript.
LANGUAGE = language(("tree_sitter_javascript", "language"), ("tree_sitter_typescript", "language_tsx"))
