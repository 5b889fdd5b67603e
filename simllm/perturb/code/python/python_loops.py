"""The rewrite rule for-to-while for Python: a `for` loop over a range becomes a `while` loop."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.code_unit import CodeUnit, Site, SkippedSite
from simllm.perturb.code.python.python_name_resolution import Scopes, Use
from simllm.perturb.code.python.python_parsing import (
    captures,
    field,
    is_inline,
    starts_line,
    statement_end,
    taken_names,
    token,
)
from simllm.perturb.code.python.python_scope_tree import IMMEDIATE, Scope
from simllm.perturb.code.python.python_type_inference import LocalValues
from simllm.perturb.code.source_edits import Edit, Span

_LEAVES = ("return_statement", "raise_statement", "break_statement", "continue_statement")
# Code that may contain a `continue` of the loop. Of inner loops, only the `else` is searched.
_SEARCHED = "block if_statement elif_clause else_clause match_statement case_clause try_statement".split()
_SEARCHED += "except_clause except_group_clause finally_clause with_statement".split()
_NO_ARGUMENTS = ("keyword_argument", "list_splat", "dictionary_splat", "comment")
_PATTERNS = ("pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern")


def for_to_while(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the loops `for i in range(a, b, step)` that can be rewritten as `while` loops.

    The `while` loop updates `i` at the end of its body. If the bound `b` is not a literal, it is evaluated
    once and stored in an additional variable. The arguments of `range` are assumed to be integers.

    Yields:
        For each loop over `range`: a `Site` with the edits if it can be rewritten, and otherwise a
        `SkippedSite` with the reason.
    """
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
    """Return whether a loop iterates over a call `range(...)`.

    It is not checked whether the code redefines the name `range`.
    """
    right = field(loop, "right")
    if right.type != "call" or loop.children[0].type == "async":
        return False
    return unit.text_of(field(right, "function")) == b"range"


class _Loops:
    """Analysis and rewriting of all loops `for i in range(...)` in the parsed code.

    Args:
        unit: The parsed code.
        count: The number of these loops. A name for a new variable is prepared for each loop, because the
            rewrite of the loop may need a variable for the end of the range.
    """

    def __init__(self, unit: CodeUnit, count: int) -> None:
        self._unit = unit
        self._scopes = Scopes(unit)
        self._values = LocalValues(unit, self._scopes)
        taken = taken_names(unit)
        names = (f"stop{number}" if number else "stop" for number in range(count + len(taken)))
        self._fresh = (name for name in names if name not in taken)

    def skip_reason(self, loop: Node) -> str | None:
        """Return the reason why a `for` loop cannot be rewritten as a `while` loop; None if it can be."""
        unit, scopes = self._unit, self._scopes
        target, call = field(loop, "left"), field(loop, "right")
        if loop.child_by_field_name("alternative"):
            return "the loop has an else"
        if not scopes.is_builtin(field(call, "function")):
            return "range may be another function than the builtin"
        arguments = field(call, "arguments").named_children
        if field(call, "arguments").type != "argument_list" or not 1 <= len(arguments) <= 3:
            return "the arguments of range are not plain"
        if any(node.type in _NO_ARGUMENTS for node in arguments):
            return "the arguments of range are not plain"
        if b"#" in unit.text[loop.start_byte : token(loop, ":").start_byte]:
            return "the head of the loop may hold a comment"
        if len(arguments) == 3 and not _integer(unit, arguments[2]):
            return "the step is no literal, or zero"
        if len(arguments) > 1 and self._values.kind(arguments[0]) != "integer":
            return "the start is not surely an integer"
        first = _statements(loop)[0]
        inline = is_inline(unit, token(loop, ":"), first)
        if not starts_line(unit, loop) or not (inline or starts_line(unit, first)):
            return "a line before ends with a backslash"
        if any(protected for _, protected in _continues(loop)):
            return "a continue stands inside try"
        variable = scopes.at(target) if target.type == "identifier" else None
        if (
            variable is None
            or not scopes.is_known(variable)
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
        name, colon = unit.text_of(field(loop, "left")), token(loop, ":")
        arguments = field(field(loop, "right"), "arguments").named_children
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
        statements = _statements(loop)
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
        """Return the code for an argument of `range` when a `for` loop is rewritten as a `while` loop.

        The code is a list of pieces. Each piece is either new text (bytes) or a range of the source to copy
        (`Span`). If the argument has several lines, or has the form `name := value`, it is put into
        parentheses, because it may need them outside `range(...)`.
        """
        span = Span(node.start_byte, node.end_byte)
        if b"\n" in self._unit.text_of(node) or node.type == "named_expression":
            return [b"(", span, b")"]
        return [span]


def _statements(loop: Node) -> list[Node]:
    """Return the statements in the body of a loop, without comments."""
    return [child for child in field(loop, "body").named_children if child.type != "comment"]


def _integer(unit: CodeUnit, node: Node) -> int | None:
    """Return the value of an integer literal, which may have a sign; None for any other expression."""
    try:
        return int(unit.text_of(node), 0)
    except ValueError:
        return None


def _continues(loop: Node) -> Iterator[tuple[Node, bool]]:
    """Find all `continue` statements that refer to a given loop, and not to an inner loop.

    Yields:
        The `continue` statement, and whether a `try` statement inside the loop contains it.
    """
    todo = [(field(loop, "body"), False)]
    while todo:
        node, protected = todo.pop()
        if node.type == "continue_statement":
            yield node, protected
        elif node.type in ("for_statement", "while_statement"):
            todo += [(child, protected) for child in node.children if child.type == "else_clause"]
        elif node.type in _SEARCHED:
            protected = protected or node.type == "try_statement"
            todo += [(child, protected) for child in node.named_children]


def _loop_over(target: Node) -> Node | None:
    """Return the `for` statement of which an identifier is the loop variable; None if there is none.

    In `for i in x: print(i)`, the statement is returned for the first `i`, and None for the second `i`. The
    loop variable may also stand in a pattern, such as `i, j`.

    Args:
        target: The syntax node of the identifier, at one place in the code.
    """
    node = target
    while node.parent is not None and node.parent.type in _PATTERNS:
        node = node.parent
    loop = node.parent
    is_target = loop is not None and loop.type == "for_statement" and loop.child_by_field_name("left") == node
    return loop if is_target else None


def _reason_to_skip(loop: Node, loops: list[Node], scope: Scope, use: Use) -> str | None:
    """Return the reason why one use of the loop variable prevents rewriting a `for` loop as a `while` loop.

    The rewrite changes the value that the variable has after the loop. Code outside the loop must therefore
    not read the variable, with one exception: the body of another `for` loop that assigns to the same
    variable may read it, because there the value comes from the other loop.

    Args:
        loop: The loop to rewrite.
        loops: All `for` loops that assign to the variable.
        scope: The scope of the variable.
        use: The use of the variable to check.

    Returns:
        The reason; None if this use does not prevent the rewrite.
    """
    at = use.scope
    while at is not scope and at.node.type in IMMEDIATE and at.parent is not None:
        at = at.parent
    if at is not scope:
        return "the loop variable is captured"
    node = use.node
    if node == field(loop, "left"):
        return None
    if _is_inside(node, loop):
        if use.role != "read":
            return "the loop variable is bound in the body"
        return None if _is_inside(node, field(loop, "body")) else "range reads the loop variable"
    if use.role in ("parameter", "rest") or _loop_over(node):
        return None
    if any(_is_inside(node, field(other, "body")) and not _is_inside(loop, other) for other in loops):
        return "the loop variable is deleted" if use.role == "delete" else None
    return "the loop variable is used outside the loop"


def _is_inside(node: Node, outer: Node) -> bool:
    """Return whether a syntax node lies within the range of another one."""
    return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte
