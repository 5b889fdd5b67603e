"""Analysis of which Java statements can complete normally.

A statement can complete normally if the code after it is reachable. For example, a `return` statement never
completes normally. The rules are those of the Java Language Specification, section 14.22.
"""

from __future__ import annotations

from tree_sitter import Node

from simllm.perturb.code.java.java_parsing import (
    JavaUnit,
    children,
    field,
    required,
    walk,
    without_parentheses,
)
from simllm.perturb.code.java.java_variable_references import variable_of

LOOPS = frozenset(("for_statement", "enhanced_for_statement", "while_statement", "do_statement"))
FUNCTIONS = frozenset(("lambda_expression", "class_body"))  # a jump inside does not leave them
_JUMPS = frozenset(
    "return_statement throw_statement break_statement continue_statement yield_statement".split()
)
_NO_CONSTANT = frozenset(
    "method_invocation assignment_expression update_expression array_access object_creation_expression "
    "instanceof_expression switch_expression".split()
)


def completes_normally(unit: JavaUnit, node: Node) -> bool | None:
    """Return whether a Java statement can complete normally, which means that the code after it is reachable.

    Args:
        unit: The parsed code.
        node: The statement. The code is assumed to compile.

    Returns:
        True or False; None if the analysis cannot decide.
    """
    kind = node.type
    if kind in _JUMPS:
        return False
    if kind in ("block", "constructor_body", "switch_block_statement_group"):
        statements = [child for child in children(node) if child.type != "switch_label"]
        return completes_normally(unit, statements[-1]) if statements else True
    if kind == "if_statement":
        other = field(node, "alternative")
        if other is None:
            return True
        return _any(
            [completes_normally(unit, required(node, "consequence")), completes_normally(unit, other)]
        )
    if kind == "labeled_statement":
        label = unit.text_of(children(node)[0])
        inside = completes_normally(unit, children(node)[1])
        return True if label in _labels(unit, node, "break_statement") else inside
    if kind in LOOPS:
        return _loop_completes(unit, node)
    if kind == "synchronized_statement":
        return completes_normally(unit, required(node, "body"))
    if kind in ("try_statement", "try_with_resources_statement"):
        return _try_completes(unit, node)
    if kind == "switch_expression":
        return _switch_completes(unit, node)
    return True


def jumps(node: Node, kind: str) -> list[Node]:
    """Return the statements `break;` or `continue;` that refer to a given loop or switch.

    Statements with a label, such as `break outer;`, are not returned. Inner loops, lambdas and classes are
    not searched, because a statement inside them does not refer to the given loop or switch. For `break`,
    inner switches are not searched either.

    Args:
        node: The loop or switch.
        kind: "break_statement" or "continue_statement".
    """
    stop = LOOPS | FUNCTIONS | ({"switch_expression"} if kind == "break_statement" else set())
    found = [part for child in node.children for part in walk(child, not_into=frozenset(stop))]
    return [part for part in found if part.type == kind and not children(part)]


def _labels(unit: JavaUnit, node: Node, kind: str) -> set[bytes]:
    """Return the labels of all `break` or all `continue` statements inside a statement.

    For example, the result for `{ continue outer; }` is `{b"outer"}`.

    Args:
        unit: The parsed code.
        node: The statement to search.
        kind: "break_statement" or "continue_statement".
    """
    found = [part for part in walk(node, not_into=FUNCTIONS) if part.type == kind]
    return {unit.text_of(children(part)[0]) for part in found if children(part)}


def _any(parts: list[bool | None]) -> bool | None:
    """Return the logical "or" of truth values that may be unknown (None).

    The result is True if any value is True, and False if all values are False. Otherwise it is None.
    """
    return True if True in parts else None if None in parts else False


def _loop_completes(unit: JavaUnit, node: Node) -> bool | None:
    """Return whether the code after a loop is reachable; None if the analysis cannot decide."""
    if node.type == "enhanced_for_statement" or jumps(node, "break_statement"):
        return True
    condition = field(node, "condition")
    forever = True if condition is None else is_constant_true(unit, condition)
    if node.type != "do_statement":
        return None if forever is None else not forever
    if forever is not False:
        return None if forever is None else False
    if jumps(node, "continue_statement") or _labels(unit, node, "continue_statement"):
        return None
    return completes_normally(unit, required(node, "body"))


def is_constant_true(unit: JavaUnit, condition: Node) -> bool | None:
    """Return whether a loop condition is a constant expression with the value true, such as `true`.

    The code after a loop with such a condition is reachable only by a `break`.

    Args:
        unit: The parsed code.
        condition: The condition.

    Returns:
        True or False. None if the analysis cannot decide: it does not compute constants such as `1 < 2`.
    """
    condition = without_parentheses(condition)
    if condition.type == "true":
        return True
    parts = list(walk(condition))
    if any(part.type in _NO_CONSTANT for part in parts):
        return False
    for part in parts:  # a local variable that is not final is no constant
        variable = variable_of(unit, part) if part.type == "identifier" else None
        if variable is not None and variable.kind != "field" and not _is_final(variable.declaration):
            return False
    return None


def _is_final(declaration: Node) -> bool:
    """Return whether a local variable is declared `final`.

    Args:
        declaration: The identifier of the variable in its declaration.
    """
    node: Node | None = declaration
    while node is not None and not node.type.endswith(("_declaration", "parameter", "_statement")):
        node = node.parent
    return node is not None and any(
        child.type == "modifiers" and b"final" in (child.text or b"") for child in node.children
    )


def _try_completes(unit: JavaUnit, node: Node) -> bool | None:
    """Return whether the code after a `try` statement is reachable; None if the analysis cannot decide."""
    parts = [completes_normally(unit, required(node, "body"))]
    finally_completes: bool | None = True
    for clause in children(node):
        if clause.type == "catch_clause":
            parts.append(completes_normally(unit, required(clause, "body")))
        elif clause.type == "finally_clause":
            finally_completes = completes_normally(unit, children(clause)[0])
    return _any(parts) if finally_completes else finally_completes


def _switch_completes(unit: JavaUnit, node: Node) -> bool | None:
    """Return whether the code after a `switch` statement is reachable; None if the analysis cannot decide."""
    groups = children(required(node, "body"))
    labels = [label for group in groups for label in children(group) if label.type == "switch_label"]
    if any(child.type in ("pattern", "guard") for label in labels for child in label.children):
        return None
    if jumps(node, "break_statement"):
        return True
    parts = [part.type for label in labels for part in label.children]
    if "null_literal" in parts or ("default" not in parts and "field_access" in parts):
        return None  # the compiler may demand that the cases are exhaustive
    if "default" not in parts:
        return True
    if groups[0].type == "switch_rule":
        return _any([completes_normally(unit, children(group)[-1]) for group in groups])
    last = [child for child in children(groups[-1]) if child.type != "switch_label"]
    return completes_normally(unit, groups[-1]) if last else True
