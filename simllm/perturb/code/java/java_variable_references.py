"""The variables that Java expressions read or assign, such as the field `i` for `this.i`."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.java.java_name_resolution import Variable
from simllm.perturb.code.java.java_parsing import JavaUnit, children, required, walk, without_parentheses


def variable_of(unit: JavaUnit, node: Node) -> Variable | None:
    """Return the variable to which an expression such as `i` or `this.i` refers.

    Returns:
        The variable; None if the expression has another form, or if the declaration of the variable is
        unknown.
    """
    node = without_parentheses(node)
    if node.type == "field_access" and required(node, "object").type == "this":
        name = unit.text_of(required(node, "field")).decode()
        body = node.parent
        while body is not None and body.id not in unit.scopes.fields:
            body = body.parent
        return unit.scopes.fields[body.id].get(name) if body is not None else None
    return unit.scopes.meaning.get(node.start_byte) if node.type == "identifier" else None


def assigned_variables(unit: JavaUnit, node: Node) -> Iterator[Variable | None]:
    """Yield the target of each assignment inside a syntax node, such as `i` for `i = 0` or `i++`.

    Yields:
        The assigned variable; None if the target is not a known variable, as in `a[0] = 1`.
    """
    for part in walk(node):
        if part.type == "assignment_expression":
            yield variable_of(unit, required(part, "left"))
        elif part.type == "update_expression":
            yield variable_of(unit, children(part)[0])
