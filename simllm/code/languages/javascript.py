"""Rules that find documented JavaScript functions: a JSDoc comment documents the function or method after it.

A function that is assigned to a name, as in `const f = () => 1`, is also found.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from simllm.code.languages.cursor import NodePath, path_to_type
from simllm.code.languages.language import Language, block_comments, field_text, strip_block_marks, text

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

# Types of nodes that may contain a function, and the field that holds the function ("": the first child).
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
    """Find the declaration of the function that begins with a token, or with decorators before it."""
    start = path_to_type(path, _OPENS) or path_to_type(path, _DECORATOR)
    if not start:
        return None
    declaration: Node | None = start[-1]
    while declaration and declaration.type == "decorator":
        declaration = declaration.next_named_sibling
    return [*start[:-1], declaration] if declaration and _function_inside(declaration) else None


def _function_inside(node: Node) -> Node | None:
    """Return the function in a declaration, if any, such as `() => 1` in `const f = () => 1`."""
    here: Node | None = node
    while here and here.type in _AROUND:
        by = _AROUND[here.type]
        if here.type == "export_statement":
            here = here.child_by_field_name("declaration") or here.child_by_field_name("value")
        else:
            here = here.child_by_field_name(by) if by else here.named_child(0)
    return here if here and here.type in _NAMED | _ANONYMOUS else None


def _name(node: Node) -> str:
    """Return the name of a function without prefixes: `exports.f = () => 1` gives "f"."""
    here: Node | None = node
    while here and here.type not in _NAMED:
        for by in ("left", "key", "property", "name"):
            if child := here.child_by_field_name(by):
                return re.sub(r"^(?:module\.)?exports\.|\bthis\.|\bprototype\.|[\"']", "", text(child))
        inner = here.child_by_field_name("declaration") or here.named_child(0)
        here = inner if here.type in _AROUND else None
    return field_text(here, "name") if here else ""


_CLASSES = frozenset(
    {"abstract_class_declaration", "class", "class_declaration", "interface_declaration", "module"}
)


def language(*grammars: tuple[str, str]) -> Language:
    """Build the rules of JavaScript or TypeScript, which differ only in the grammars."""
    return Language(
        grammars=grammars,
        places=block_comments,
        function=_function,
        strip_marks=strip_block_marks,
        name=_name,
        classes=_CLASSES,
    )


# If the first grammar finds errors, the source may be Flow, which is similar to TypeScript.
LANGUAGE = language(("tree_sitter_javascript", "language"), ("tree_sitter_typescript", "language_tsx"))
