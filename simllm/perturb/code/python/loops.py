"""The rule for-to-while for Python: a `for` loop over a range becomes a `while` loop.

The arguments of `range` are assumed to be integers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.edits import Edit, Span
from simllm.perturb.code.python.parsing import (
    captures,
    children,
    is_inline,
    required,
    starts_line,
    statement_end,
    taken_names,
    token,
)
from simllm.perturb.code.python.scopes import IMMEDIATE, Scope, Scopes, Use
from simllm.perturb.code.python.types import LocalValues
from simllm.perturb.code.units import CodeUnit, Site, SkippedSite, span_of

_LEAVES = ("return_statement", "raise_statement", "break_statement", "continue_statement")
# Code that may contain a `continue` of the loop. Of inner loops, only the `else` is searched.
_SEARCHED = "block if_statement elif_clause else_clause match_statement case_clause try_statement".split()
_SEARCHED += "except_clause except_group_clause finally_clause with_statement".split()
_NO_ARGUMENTS = ("keyword_argument", "list_splat", "dictionary_splat", "comment")
_PATTERNS = ("pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern")


def for_to_while(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the loops over `range`, such as `for i in range(a, b, step)`."""
    loops = [
        node for node in captures(unit, "(for_statement) @for").get("for", []) if _is_over_range(unit, node)
    ]
    if not loops:
        return
    finder = _Loops(unit, len(loops))
    for loop in reversed(loops):
        reason = finder.skip_reason(loop)
        yield SkippedSite(loop, reason) if reason else Site(loop, tuple(finder.edits(loop)))


def _is_over_range(unit: CodeUnit, loop: Node) -> bool:
    """Return whether a loop iterates over a call `range(...)`, whatever the name `range` means."""
    right = required(loop, "right")
    if right.type != "call" or loop.children[0].type == "async":
        return False
    return unit.text_of(required(right, "function")) == b"range"


class _Loops:
    """Analysis and rewriting of all `count` loops over `range` in the parsed code."""

    def __init__(self, unit: CodeUnit, count: int) -> None:
        self._unit = unit
        self._scopes = Scopes(unit)
        self._values = LocalValues(unit, self._scopes)
        # The bound of a range is evaluated once, so a bound that is not a literal needs a variable of its
        # own.
        taken = taken_names(unit)
        names = (f"stop{number}" if number else "stop" for number in range(count + len(taken)))
        self._fresh = (name for name in names if name not in taken)

    def skip_reason(self, loop: Node) -> str | None:
        """Return the reason why a loop cannot be rewritten; None if it can be."""
        unit, scopes = self._unit, self._scopes
        target, call = required(loop, "left"), required(loop, "right")
        if loop.child_by_field_name("alternative"):
            return "the loop has an else"
        if not scopes.is_builtin(required(call, "function")):
            return "range may be another function than the builtin"
        arguments = required(call, "arguments").named_children
        if required(call, "arguments").type != "argument_list" or not 1 <= len(arguments) <= 3:
            return "the arguments of range are not plain"
        if any(node.type in _NO_ARGUMENTS for node in arguments):
            return "the arguments of range are not plain"
        if b"#" in unit.text[loop.start_byte : token(loop, ":").start_byte]:
            return "the head of the loop may hold a comment"
        # The sign of the step decides between `<` and `>`.
        if len(arguments) == 3 and not _integer(unit, arguments[2]):
            return "the step is no literal, or zero"
        # `range` takes any object with `__index__`, such as a numpy integer, but counts in plain integers.
        if len(arguments) > 1 and self._values.kind(arguments[0]) != "integer":
            return "the start is not surely an integer"
        first = children(required(loop, "body"))[0]
        inline = is_inline(unit, token(loop, ":"), first)
        if not starts_line(unit, loop) or not (inline or starts_line(unit, first)):
            return "a line before ends with a backslash"
        # The update would come before a `finally`, which may read the variable.
        if any(protected for _, protected in _continues(loop)):
            return "a continue stands inside try"
        variable = scopes.at(target) if target.type == "identifier" else None
        if (
            variable is None
            or not scopes.is_known(variable)
            # Other code may read or set a variable of a module or class at any time.
            or variable.scope.node.type != "function_definition"
        ):
            return "the loop variable is not local to a function"
        if variable.scope.reflects:
            return "code may read names at run time"
        loops = [around for use in variable.uses if (around := _loop_over(use.node))]
        reasons = (_reason_to_skip(loop, loops, variable.scope, use) for use in variable.uses)
        return next((reason for reason in reasons if reason), None)

    def edits(self, loop: Node) -> Iterator[Edit]:
        """Yield the edits that turn a `for` loop into a `while` loop."""
        unit = self._unit
        name, colon = unit.text_of(required(loop, "left")), token(loop, ":")
        arguments = required(required(loop, "right"), "arguments").named_children
        start, stop = (None, arguments[0]) if len(arguments) == 1 else arguments[:2]
        step = _integer(unit, arguments[2]) or 1 if len(arguments) == 3 else 1
        falls = step < 0
        update = name + (b" -= %d" if falls else b" += %d") % abs(step)
        new_line = unit.newline + unit.indent_of(loop.start_byte)
        head: list[bytes | Span] = [name + b" = ", *(self._value(start) if start else [b"0"]), new_line]
        bound: list[bytes | Span]
        if _integer(unit, stop) is not None:
            bound = self._value(stop)
        else:
            bound = [next(self._fresh).encode()]
            head += [*bound, b" = ", *self._value(stop), new_line]
        head += [b"while " + name + (b" > " if falls else b" < "), *bound]
        yield Edit(loop.start_byte, colon.start_byte, tuple(head))
        for node, _ in _continues(loop):
            own_line = unit.newline + unit.indent_of(node.start_byte)
            between = own_line if starts_line(unit, node) else b"; "
            yield Edit(node.start_byte, node.start_byte, (update + between,))
        statements = children(required(loop, "body"))
        # The end of the body is not reached, so no update is needed there.
        if statements[-1].type in _LEAVES:
            return
        end = statements[-1].end_byte
        if not is_inline(unit, colon, statements[0]):
            end = statement_end(unit, statements[-1])
            yield Edit(end, end, (unit.newline + unit.indent_of(statements[0].start_byte) + update,))
        elif match := re.compile(rb"[ \t]*;").match(unit.text, end):
            yield Edit(match.end(), match.end(), (b" " + update,))
        else:
            yield Edit(end, end, (b"; " + update,))

    def _value(self, node: Node) -> list[bytes | Span]:
        """Return the parts of an argument of `range` that stands outside of the call."""
        span = span_of(node)
        # Outside the parentheses of `range(...)`, such code needs its own.
        if b"\n" in self._unit.text_of(node) or node.type == "named_expression":
            return [b"(", span, b")"]
        return [span]


def _integer(unit: CodeUnit, node: Node) -> int | None:
    """Return the value of an integer literal, which may have a sign; None for any other expression."""
    try:
        return int(unit.text_of(node), 0)
    except ValueError:
        return None


def _continues(loop: Node) -> Iterator[tuple[Node, bool]]:
    """Yield each `continue` of a loop, not of inner ones, and whether a `try` inside the loop contains it."""
    todo = [(required(loop, "body"), False)]
    while todo:
        node, protected = todo.pop()
        if node.type == "continue_statement":
            yield node, protected
        elif node.type in ("for_statement", "while_statement"):
            # A `continue` in the `else` of an inner loop refers to the outer loop.
            todo += [(child, protected) for child in node.children if child.type == "else_clause"]
        elif node.type in _SEARCHED:
            protected = protected or node.type == "try_statement"
            todo += [(child, protected) for child in node.named_children]


def _loop_over(target: Node) -> Node | None:
    """Return the `for` that assigns to this identifier, perhaps by a pattern; None if there is none."""
    node = target
    while node.parent is not None and node.parent.type in _PATTERNS:
        node = node.parent
    loop = node.parent
    is_target = loop is not None and loop.type == "for_statement" and loop.child_by_field_name("left") == node
    return loop if is_target else None


def _reason_to_skip(loop: Node, loops: list[Node], scope: Scope, use: Use) -> str | None:
    """Return the reason why one use of the loop variable prevents the rewrite; None if it does not.

    `loops` has all `for` loops that assign to the variable, and `scope` is the scope of the variable.
    """
    at = use.scope
    # A comprehension runs at once, while a function or generator may run after the loop has changed the
    # variable.
    while at is not scope and at.node.type in IMMEDIATE and at.parent is not None:
        at = at.parent
    if at is not scope:
        return "the loop variable is captured"
    node = use.node
    if node == required(loop, "left"):
        return None
    if _is_inside(node, loop):
        if use.role != "read":
            # `for` takes the next value from the range all the same; `while` would go on from the new value.
            return "the loop variable is bound in the body"
        return None if _is_inside(node, required(loop, "body")) else "range reads the loop variable"
    if use.role in ("parameter", "rest") or _loop_over(node):
        return None
    # In the body of another loop over the same variable, the value comes from that loop.
    if any(_is_inside(node, required(other, "body")) and not _is_inside(loop, other) for other in loops):
        return "the loop variable is deleted" if use.role == "delete" else None
    # After the loop, the variable has the last value of the range with `for`, but the first value beyond it
    # with `while`. So only code that gets its value from elsewhere may read the variable outside.
    return "the loop variable is used outside the loop"


def _is_inside(node: Node, outer: Node) -> bool:
    """Return whether a syntax node lies within the range of another one."""
    return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte
