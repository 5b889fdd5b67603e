"""Analysis of which Java statements can complete normally, so that the code after them is reachable.

The rules are those of the Java Language Specification, section 14.22. None means that the analysis cannot
decide.
"""

from __future__ import annotations

from tree_sitter import Node

from simllm.perturb.code.java.parsing import (
    JavaUnit,
    children,
    field_child,
    required,
    variable_of,
    walk,
    without_parentheses,
)

LOOPS = frozenset(("for_statement", "enhanced_for_statement", "while_statement", "do_statement"))
# A jump inside such a node does not leave it.
FUNCTIONS = frozenset(("lambda_expression", "class_body"))
_JUMPS = frozenset(
    "return_statement throw_statement break_statement continue_statement yield_statement".split()
)
# Expressions that are never constant, by the Java Language Specification, section 15.29.
_NO_CONSTANT = frozenset(
    "method_invocation assignment_expression update_expression array_access object_creation_expression "
    "instanceof_expression switch_expression".split()
)


def completes_normally(unit: JavaUnit, node: Node) -> bool | None:
    """Return whether a statement can complete normally."""
    kind = node.type
    if kind in _JUMPS:
        return False
    if kind in ("block", "constructor_body", "switch_block_statement_group"):
        statements = [child for child in children(node) if child.type != "switch_label"]
        # The code compiles, so all statements but the last complete normally.
        return completes_normally(unit, statements[-1]) if statements else True
    if kind == "if_statement":
        other = field_child(node, "alternative")
        # Java does not look at the condition of an `if`, not even at `if (true)`.
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


def _jumps(node: Node, kind: str) -> list[Node]:
    """Return the `break;` or `continue;` statements, without a label, that refer to a loop or switch."""
    stop = LOOPS | FUNCTIONS | ({"switch_expression"} if kind == "break_statement" else set())
    found = [part for child in node.children for part in walk(child, not_into=frozenset(stop))]
    return [part for part in found if part.type == kind and not children(part)]


def _labels(unit: JavaUnit, node: Node, kind: str) -> set[bytes]:
    """Return the labels in the statements of a kind: `{b"outer"}` for `{ continue outer; }`."""
    found = [part for part in walk(node, not_into=FUNCTIONS) if part.type == kind]
    return {unit.text_of(children(part)[0]) for part in found if children(part)}


def _any(parts: list[bool | None]) -> bool | None:
    """Return the logical "or" of truth values that may be unknown (None)."""
    return True if True in parts else None if None in parts else False


def _loop_completes(unit: JavaUnit, node: Node) -> bool | None:
    if node.type == "enhanced_for_statement" or _jumps(node, "break_statement"):
        return True
    condition = field_child(node, "condition")
    forever = True if condition is None else _is_constant_true(unit, condition)
    if node.type != "do_statement":
        return None if forever is None else not forever
    if forever is not False:
        return None if forever is None else False
    # A `continue` leads to the condition, too, unless a `finally` stops it.
    if _jumps(node, "continue_statement") or _labels(unit, node, "continue_statement"):
        return None
    return completes_normally(unit, required(node, "body"))


def _is_constant_true(unit: JavaUnit, condition: Node) -> bool | None:
    """Return whether a condition is a constant expression with the value true.

    The code after a loop with such a condition is reachable only by a `break`.
    """
    condition = without_parentheses(condition)
    if condition.type == "true":
        return True
    parts = list(walk(condition))
    if any(part.type in _NO_CONSTANT for part in parts):
        return False
    # A local variable that is not final is no constant.
    for part in parts:
        variable = variable_of(unit, part) if part.type == "identifier" else None
        if variable is not None and variable.kind != "field" and not _is_final(variable.declaration):
            return False
    return None


def _is_final(declaration: Node) -> bool:
    """Return whether a local variable, given the identifier in its declaration, is `final`."""
    node: Node | None = declaration
    while node is not None and not node.type.endswith(("_declaration", "parameter", "_statement")):
        node = node.parent
    return node is not None and any(
        child.type == "modifiers" and b"final" in (child.text or b"") for child in node.children
    )


def _try_completes(unit: JavaUnit, node: Node) -> bool | None:
    parts = [completes_normally(unit, required(node, "body"))]
    finally_completes: bool | None = True
    for clause in children(node):
        if clause.type == "catch_clause":
            parts.append(completes_normally(unit, required(clause, "body")))
        elif clause.type == "finally_clause":
            finally_completes = completes_normally(unit, children(clause)[0])
    # A `finally` that cannot complete overrides the other blocks.
    return _any(parts) if finally_completes else finally_completes


def _switch_completes(unit: JavaUnit, node: Node) -> bool | None:
    groups = children(required(node, "body"))
    labels = [label for group in groups for label in children(group) if label.type == "switch_label"]
    if any(child.type in ("pattern", "guard") for label in labels for child in label.children):
        return None
    if _jumps(node, "break_statement"):
        return True
    parts = [part.type for label in labels for part in label.children]
    if "null_literal" in parts or ("default" not in parts and "field_access" in parts):
        # The compiler may demand that the cases are exhaustive.
        return None
    if "default" not in parts:
        return True
    if groups[0].type == "switch_rule":
        return _any([completes_normally(unit, children(group)[-1]) for group in groups])
    last = [child for child in children(groups[-1]) if child.type != "switch_label"]
    return completes_normally(unit, groups[-1]) if last else True
