"""The variables that Java expressions read or assign."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.java.java_name_resolution import Variable
from simllm.perturb.code.java.java_parsing import JavaUnit, children, required, walk, without_parentheses


def variable_of(unit: JavaUnit, node: Node) -> Variable | None:
    """Return the variable that `i` or `this.i` means; None for other expressions and unknown declarations."""
    node = without_parentheses(node)
    if node.type == "field_access" and required(node, "object").type == "this":
        name = unit.text_of(required(node, "field")).decode()
        body = node.parent
        # `this` is the object of the innermost class around.
        while body is not None and body.id not in unit.scopes.fields:
            body = body.parent
        return unit.scopes.fields[body.id].get(name) if body is not None else None
    return unit.scopes.meaning.get(node.start_byte) if node.type == "identifier" else None


def assigned_variables(unit: JavaUnit, node: Node) -> Iterator[Variable | None]:
    """Yield the target of each assignment and increment in a syntax node; None if it is no known variable."""
    for part in walk(node):
        if part.type == "assignment_expression":
            yield variable_of(unit, required(part, "left"))
        elif part.type == "update_expression":
            yield variable_of(unit, children(part)[0])
