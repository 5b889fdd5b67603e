"""The rule for-to-while for Java: `for (init; condition; update)` becomes a `while` loop.

The initializer moves before the loop. The update moves to the end of the body, and is copied before each
`continue`. In this module, `statement` is a loop with its labels, such as `outer: for (...) ...`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.edits import Edit, Span
from simllm.perturb.code.java.parsing import (
    JavaUnit,
    children,
    field_child,
    find_nodes,
    has_comment,
    required,
    walk,
)
from simllm.perturb.code.java.reachability import FUNCTIONS, LOOPS, completes_normally
from simllm.perturb.code.units import CodeUnit, Site, SkippedSite, indentation_step, span_of

_STATEMENT_LISTS = frozenset(("block", "constructor_body", "switch_block_statement_group"))
_GUARDS = frozenset(("try_statement", "try_with_resources_statement", "synchronized_statement"))

_CLASSES = frozenset(("class_body", "lambda_expression", "method_reference"))
_DECLARATIONS = ("class_declaration", "interface_declaration", "enum_declaration", "record_declaration")


def for_to_while(unit: CodeUnit) -> Iterator[Site | SkippedSite]:
    """Find the `for` loops, except those over a collection."""
    assert isinstance(unit, JavaUnit)
    for node in find_nodes(unit.root, "for_statement"):
        statement = node
        while statement.parent is not None and statement.parent.type == "labeled_statement":
            statement = statement.parent
        if reason := _obstacle(unit, node, statement):
            yield SkippedSite(node, reason)
        else:
            yield Site(node, tuple(_edits(unit, node, statement)))


def _obstacle(unit: JavaUnit, node: Node, statement: Node) -> str:
    """Return the reason why a `for` loop cannot be rewritten; empty if it can be."""
    block = statement.parent
    body = required(node, "body")
    # The initializer needs a place before the loop, and its variables then live until the end of the block.
    if block is None or block.type not in ("block", "constructor_body"):
        return "the loop does not stand in a block"
    close = _closing_parenthesis(node, body)
    if has_comment([child for child in node.children if child.start_byte < close.start_byte]):
        return "a comment stands in the head of the loop"
    for variable in unit.scopes.variables:
        name, hoisted = variable.name, variable.scope.id == node.id
        if hoisted and unit.scopes.occurs(name, statement.end_byte, block.end_byte):
            # Another declaration of the name would not compile, and a field of this name would be hidden.
            return f"the name {name} occurs after the loop, in the same block"
    updates = _updates(node)
    # All further obstacles concern the update.
    if not updates:
        return ""
    # An unreachable update would not compile.
    if completes_normally(unit, body) is not True or not all(
        completes_normally(unit, children(part)[0]) for part in find_nodes(body, "finally_clause")
    ):
        return "the end of the body may be unreachable"
    parts = [part for update in updates for part in walk(update)]
    names = {unit.text_of(part).decode() for part in parts if part.type in ("identifier", "type_identifier")}
    # In the body, the update would mean the hidden name.
    for hidden in _declared_names(unit, body):
        if hidden in names:
            return f"the body declares {hidden}, which the update names"
    continues = _continues_of_loop(unit, node, statement)
    # Objects made by different copies would have different classes.
    if continues and any(part.type in _CLASSES for part in parts):
        return "the update makes a class, and each copy of it would make another one"
    for jump in continues:
        parent = jump.parent
        while parent is not None and parent.id != node.id:
            # The `try` might catch an exception of the update, and the `synchronized` would hold its lock.
            if parent.type in _GUARDS:
                return "a continue of the loop stands in a try or synchronized statement"
            if parent.type == "labeled_statement" and children(parent)[1].id == jump.id:
                return "a continue of the loop has a label of its own"
            parent = parent.parent
    return ""


def _declared_names(unit: JavaUnit, body: Node) -> Iterator[str]:
    """Yield the names of the variables and classes that the body of a loop declares."""
    for variable in unit.scopes.variables:
        if body.start_byte <= variable.declaration.start_byte < body.end_byte:
            yield variable.name
    for declaration in find_nodes(body, *_DECLARATIONS):
        yield unit.text_of(required(declaration, "name")).decode()


def _closing_parenthesis(node: Node, body: Node) -> Node:
    """Return the closing parenthesis in the head of a loop."""
    return next(c for c in reversed(node.children) if c.type == ")" and c.start_byte < body.start_byte)


def _updates(node: Node) -> list[Node]:
    """Return the update expressions of a `for` loop, such as `i++`."""
    return [child for child in node.children_by_field_name("update") if "comment" not in child.type]


def _continues_of_loop(unit: JavaUnit, node: Node, statement: Node) -> list[Node]:
    """Return the `continue` statements that continue this loop, and not a loop inside or around it."""
    # A `continue` with a label may stand in an inner loop.
    labels = set()
    while statement.id != node.id:
        labels.add(unit.text_of(children(statement)[0]))
        statement = children(statement)[1]
    body = required(node, "body")
    plain = [part for part in walk(body, not_into=LOOPS | FUNCTIONS) if part.type == "continue_statement"]
    labelled = [part for part in walk(body, not_into=FUNCTIONS) if part.type == "continue_statement"]
    return [part for part in plain if not children(part)] + [
        part for part in labelled if children(part) and unit.text_of(children(part)[0]) in labels
    ]


def _edits(unit: JavaUnit, node: Node, statement: Node) -> Iterator[Edit]:
    """Yield the edits that turn a `for` loop into a `while` loop."""
    body = required(node, "body")
    updates = _updates(node)
    line = unit.newline + unit.indent_of(statement.start_byte)
    starts: list[bytes | Span] = []
    for init in node.children_by_field_name("init"):
        starts += [*([line] if starts else []), *_as_statement(init)]
    condition = field_child(node, "condition")
    test: bytes | Span = span_of(condition) if condition is not None else b"true"
    close = _closing_parenthesis(node, body)
    head = [b"while (", test, b")"]
    if statement.id == node.id:
        between = [line] if starts else []
        yield Edit(node.start_byte, close.end_byte, (*starts, *between, *head))
    else:
        # The label moves to the `while` loop, after the initializer.
        yield Edit(statement.start_byte, statement.start_byte, (*starts, *([line] if starts else [])))
        yield Edit(node.start_byte, close.end_byte, tuple(head))
    for jump in _continues_of_loop(unit, node, statement) if updates else ():
        yield from _updates_before_jump(unit, jump, updates)
    yield from _updates_at_end(unit, node, body, updates)


def _as_statement(expression: Node) -> list[bytes | Span]:
    """Return the parts of the statement for an initializer, such as `i = 0;`."""
    # A declaration such as `int i = 0;` already has a semicolon.
    return [span_of(expression), *([] if expression.type == "local_variable_declaration" else [b";"])]


def _as_statements(updates: list[Node], separator: bytes) -> list[bytes | Span]:
    """Return the parts of the statements for update expressions, with a separator after each."""
    return [part for update in updates for part in (span_of(update), b";" + separator)]


def _updates_before_jump(unit: JavaUnit, jump: Node, updates: list[Node]) -> Iterator[Edit]:
    """Yield the edits that insert the updates before a `continue`."""
    parent = jump.parent
    alone = unit.text[: jump.start_byte].rpartition(b"\n")[2].strip() == b""
    separator = unit.newline + unit.indent_of(jump.start_byte) if alone else b" "
    # Elsewhere, as in `if (c) continue;`, the two statements need braces.
    if parent is not None and parent.type in _STATEMENT_LISTS:
        yield Edit(jump.start_byte, jump.start_byte, tuple(_as_statements(updates, separator)))
    else:
        yield Edit(jump.start_byte, jump.start_byte, (b"{ ", *_as_statements(updates, b" ")))
        yield Edit(jump.end_byte, jump.end_byte, (b" }",))


def _updates_at_end(unit: JavaUnit, node: Node, body: Node, updates: list[Node]) -> Iterator[Edit]:
    """Yield the edits that insert the updates at the end of the body, which gets braces if it has none."""
    indent = unit.indent_of(node.start_byte)
    step = indentation_step(indent)
    if body.type == ";":
        yield Edit(*span_of(body), (b"{ ", *_as_statements(updates, b" "), b"}"))
    elif body.type != "block":
        alone = unit.text[: body.start_byte].rpartition(b"\n")[2].strip() == b""
        line = unit.newline + unit.indent_of(body.start_byte) if alone else b" "
        end = unit.newline + indent if alone else b" "
        parts = [part for update in updates for part in (line, span_of(update), b";")]
        close = _closing_parenthesis(node, body)
        yield Edit(close.end_byte, close.end_byte, (b" {",))
        yield Edit(body.end_byte, body.end_byte, (*parts, end, b"}"))
    elif updates:
        brace = body.end_byte - 1
        before = unit.text[:brace]
        alone = before.rpartition(b"\n")[2].strip() == b""
        # The closing brace stands on a line of its own.
        if alone:
            last = children(body)[-1:] or [node]
            inner = unit.indent_of(last[0].start_byte) if children(body) else indent + step
            at = before.rindex(b"\n") + 1
            parts = [part for update in updates for part in (inner, span_of(update), b";" + unit.newline)]
            yield Edit(at, at, tuple(parts))
        else:
            space = b"" if before.endswith((b" ", b"{")) else b" "
            yield Edit(brace, brace, (space, *_as_statements(updates, b" ")))
