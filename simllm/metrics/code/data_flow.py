"""The data flow of Python and Java code, as CodeBLEU compares it (Ren et al., 2020, section 3.3).

The data flow is a list of items. An item describes one occurrence of a name: it lists the sources from which
this occurrence gets its value. An item has one of two relations:

- "computedFrom": an assigned name gets its value from the names and literals on the right side, as in
  `x = y`. The relation is also used for the variables of loops.
- "comesFrom": a used name gets its value from the places where the name was last set. The relation is also
  used for a Java declaration, as in `int x = y;`, and for a Python parameter with a default value.

The syntax tree is visited in the order of the code. A *table* keeps, for each name, the *places* (positions
of the first byte of an occurrence) where the name was last set; tables are never changed, only copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

COMES, COMPUTED = "comesFrom", "computedFrom"
Item = tuple[str, str, tuple[str, ...]]  # a name, the relation, and the names of its sources
_Table = dict[str, list[int]]  # the places where a name was last set, as bytes from the beginning
_LITERALS = frozenset({"character_literal", "string", "string_literal"})
_DEEPEST = 150  # levels of the syntax tree that are visited; deeper nodes are ignored
_DEEPEST_LOOP = 5  # levels of nested loops that are visited twice; deeper loops are visited once


def data_flow(root: Node, code: bytes, language: str) -> list[Item]:
    """Extract the data flow of code from its syntax tree; empty for languages other than "java" and "python".

    Names become var_0, var_1 and so on; sources are numbered before the name that gets their value. In
    Python, `x = y` gives `("var_1", "computedFrom", ("var_0",))` for x and `("var_0", "comesFrom", ())` for
    y.
    """
    if language not in _WALKERS:
        return []
    walker = _WALKERS[language](code)
    walker.walk(root, {}, 0)
    return _normalize(walker.links)


@dataclass
class _Links:
    """The sources of one occurrence: `sources[relation][place]` is the name at the place.

    In `x = y`, the sources of x are {"computedFrom": {4: "y"}}.
    """

    name: str
    sources: dict[str, dict[int, str]] = field(default_factory=dict)


def _normalize(links: dict[int, _Links]) -> list[Item]:
    """Convert links, keyed by place, into items in the order of the code."""
    used = {place for link in links.values() for sources in link.sources.values() for place in sources}
    names: dict[str, str] = {}
    items = []
    for place, link in sorted(links.items()):
        for relation, sources in link.sources.items():
            # An occurrence is left out if no value flows to it, and none flows from it.
            if sources or place in used:
                found = dict.fromkeys(name for _, name in sorted(sources.items()))
                for name in (*found, link.name):
                    names.setdefault(name, f"var_{len(names)}")
                items.append((names[link.name], relation, tuple(names[name] for name in found)))
    return items


class _Walker:
    """Visitor of a syntax tree; a subclass has a method `on_TYPE` for each type of node with its own rule.

    Attributes:
        links: The sources of each occurrence, keyed by its place.
    """

    def __init__(self, code: bytes) -> None:
        self.links: dict[int, _Links] = {}
        # Slices of the code are read: for each `node.text`, tree-sitter calls back into Python.
        self._code = code
        self._loops = 0  # around the current node

    def walk(self, node: Node, table: _Table, depth: int) -> _Table:
        """Visit a node with the table before it, add to `links`, and return the table after the node."""
        if "comment" in node.type or depth > _DEEPEST:
            return table
        if _is_leaf(node):
            return self._use(node, table)
        rule = getattr(self, f"on_{node.type}", None)
        if rule:
            walked: _Table = rule(node, table, depth + 1)
            return walked
        return self._walk_all(node.children, table, depth + 1)

    def _walk_all(self, nodes: Iterable[Node | None], table: _Table, depth: int) -> _Table:
        for node in nodes:
            if node:
                table = self.walk(node, table, depth)
        return table

    def _use(self, leaf: Node, table: _Table) -> _Table:
        """Record a use of a name, and return the table after it."""
        name = self._name(leaf)
        if not name:
            return table
        if name in table:
            self._link(leaf, COMES, dict.fromkeys(table[name], name))
            return table
        self._link(leaf, COMES, {})
        # The first use of an unknown name counts as the place where it was set, so that later uses are linked
        # to it.
        return {**table, name: [leaf.start_byte]} if leaf.type == "identifier" else table

    def _link(self, leaf: Node, relation: str, sources: dict[int, str]) -> None:
        link = self.links.setdefault(leaf.start_byte, _Links(self._name(leaf)))
        link.sources.setdefault(relation, {}).update(sources)

    def _set(self, targets: Sequence[Node], values: Sequence[Node], table: _Table, relation: str) -> _Table:
        """Record an assignment: each target gets its value from all names and literals in `values`."""
        sources = {
            leaf.start_byte: self._name(leaf) for value in values for leaf in self._named_leaves(value)
        }
        for leaf in (leaf for target in targets for leaf in self._named_leaves(target)):
            self._link(leaf, relation, sources)
            table = {**table, self._name(leaf): [leaf.start_byte]}
        return table

    def _name(self, leaf: Node) -> str:
        """Return the name or literal at a leaf; "" for a keyword, an operator or a punctuation mark."""
        # tree-sitter names the type of a keyword or a mark by its text.
        text = self._code[leaf.start_byte : leaf.end_byte].decode(errors="replace")
        return "" if text == leaf.type else text

    def _named_leaves(self, node: Node) -> list[Node]:
        """Return the leaves below a node that are names or literals."""
        found, stack = [], [node]
        while stack:
            inner = stack.pop()
            if _is_leaf(inner):
                if self._name(inner) and "comment" not in inner.type:
                    found.append(inner)
            else:
                stack += reversed(inner.children)
        return found

    def _passes(self) -> Iterator[None]:
        """Yield once for each visit of a loop."""
        # In the second visit, values flow from the end of the body back to its start. Nested loops multiply
        # the visits: 2^5 at most.
        self._loops += 1
        for _ in range(2 if self._loops <= _DEEPEST_LOOP else 1):
            yield
        self._loops -= 1

    def on_while_statement(self, node: Node, table: _Table, depth: int) -> _Table:
        for _ in self._passes():
            table = self._walk_all(node.children, table, depth)
        return table


class _PythonWalker(_Walker):
    def on_default_parameter(self, node: Node, table: _Table, depth: int) -> _Table:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        return self._set(_some(name), _some(value), self._walk_all([value], table, depth), COMES)

    def on_assignment(self, node: Node, table: _Table, depth: int) -> _Table:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if not left or not right:
            return table
        return self._assign(left, right, table, depth)

    on_augmented_assignment = on_assignment

    def _assign(self, left: Node, right: Node, table: _Table, depth: int) -> _Table:
        """Record an assignment: visit the right side, then set the names on the left side."""
        targets, values = ([c for c in side.children if c.type != ","] for side in (left, right))
        # In `a, b = c, d`, the value of a comes only from c. If the sides differ in number, as in
        # `a, b = f()`, each name on the left gets its value from the whole right side.
        if len(targets) != len(values) or not targets:
            targets, values = [left], [right]
        table = self._walk_all(values, table, depth)
        for target, value in zip(targets, values, strict=True):
            table = self._set([target], [value], table, COMPUTED)
        return table

    def on_for_in_clause(self, node: Node, table: _Table, depth: int) -> _Table:
        left, right = node.child_by_field_name("left"), node.children[-1]
        table = self.walk(right, table, depth)
        return self._set(_some(left), [right], table, COMPUTED)

    def on_for_statement(self, node: Node, table: _Table, depth: int) -> _Table:
        left, right, body = (node.child_by_field_name(name) for name in ("left", "right", "body"))
        for _ in self._passes():
            if left and right:
                table = self._assign(left, right, table, depth)
            table = self._walk_all([body], table, depth)
        return table

    def on_if_statement(self, node: Node, table: _Table, depth: int) -> _Table:
        after, tables, has_else = table, [], False
        for child in node.children:
            if child.type in ("elif_clause", "else_clause"):
                tables.append(self.walk(child, table, depth))
                has_else = True
            else:
                after = self.walk(child, after, depth)
        return _unite([*tables, after, *([] if has_else else [table])])

    def _comprehension(self, node: Node, table: _Table, depth: int) -> _Table:
        """Visit a comprehension, such as `[f(x) for x in y]`."""
        # The `for` clauses stand last but set the names that the rest uses.
        clauses = [child for child in node.children if child.type == "for_in_clause"]
        others = [child for child in node.children if child.type != "for_in_clause"]
        return self._walk_all([*clauses, *others], table, depth)

    on_list_comprehension = on_set_comprehension = on_dictionary_comprehension = _comprehension
    on_generator_expression = _comprehension


class _JavaWalker(_Walker):
    def on_variable_declarator(self, node: Node, table: _Table, depth: int) -> _Table:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        return self._set(_some(name), _some(value), self._walk_all([value], table, depth), COMES)

    def on_assignment_expression(self, node: Node, table: _Table, depth: int) -> _Table:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        table = self._walk_all([right], table, depth)
        return self._set(_some(left), _some(right), table, COMPUTED)

    def on_update_expression(self, node: Node, table: _Table, depth: int) -> _Table:
        return self._set([node], [node], table, COMPUTED)

    def on_if_statement(self, node: Node, table: _Table, depth: int) -> _Table:
        after, tables, has_else = table, [], False
        for child in node.children:
            if has_else:
                tables.append(self.walk(child, table, depth))
            elif child.type == "else":
                has_else = True
            else:
                after = self.walk(child, after, depth)
        return _unite([*tables, after, *([] if has_else else [table])])

    def on_for_statement(self, node: Node, table: _Table, depth: int) -> _Table:
        first = node.child_by_field_name("init")
        nodes = node.children
        for _ in self._passes():
            table = self._walk_all(nodes, table, depth)
            # The initialization runs once, before the first iteration.
            nodes = [child for child in node.children if first and child.start_byte >= first.end_byte]
        return table

    def on_enhanced_for_statement(self, node: Node, table: _Table, depth: int) -> _Table:
        name, value, body = (node.child_by_field_name(key) for key in ("name", "value", "body"))
        for _ in self._passes():
            table = self._walk_all([value], table, depth)
            table = self._set(_some(name), _some(value), table, COMPUTED)
            table = self._walk_all([body], table, depth)
        return table


_WALKERS: dict[str, type[_Walker]] = {"java": _JavaWalker, "python": _PythonWalker}


def _some(node: Node | None) -> list[Node]:
    return [node] if node else []


def _unite(tables: Iterable[_Table]) -> _Table:
    """Merge the tables of alternative branches: a name may have been set in any of them."""
    united: dict[str, set[int]] = {}
    for table in tables:
        for name, places in table.items():
            united.setdefault(name, set()).update(places)
    return {name: sorted(places) for name, places in united.items()}


def _is_leaf(node: Node) -> bool:
    return not node.child_count or node.type in _LITERALS
