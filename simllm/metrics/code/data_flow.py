"""The data flow of Python and Java code, as CodeBLEU compares it (Ren et al., 2020, section 3.3).

The data flow is a list of items. An item describes one occurrence of a name in the code: it lists the sources
from which this occurrence gets its value. An item has one of two relations:

- "computedFrom": an assigned name gets its value from the names and literals on the right side, as in
  `x = y`. The relation is also used for the variables of loops.
- "comesFrom": a used name gets its value from the places where the name was last set. The relation is also
  used for a Java declaration, as in `int x = y;`, and for a Python parameter with a default value.

To find the items, the syntax tree is visited in the order of the code. A table keeps the places where each
name was last set. All branches of an `if` start with the same table, and their tables are united afterwards.
Loops are visited twice, because values flow from the end of the body back to its start.
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


def data_flow(root: Node, language: str) -> list[Item]:
    """Extract the data flow of code: for each occurrence of a name, the names from which its value comes.

    A name is a variable, another identifier or a literal. Names are replaced by var_0, var_1 and so on. In
    each item, the names from which the value comes are numbered before the name that gets the value. For
    example, `x = y` in Python has two items:

    - `("var_1", "computedFrom", ("var_0",))`: The value of x comes from y.
    - `("var_0", "comesFrom", ())`: The value of y comes from no other place in the code.

    Args:
        root: The root of the syntax tree.
        language: The language of the code. Only "java" and "python" are supported; the list is empty for
            other languages.

    Returns:
        A list of items. An item consists of a name, the relation, and the names from which its value comes.
        The relation is "computedFrom" for assigned names and loop variables. It is "comesFrom" for used
        names, declared names in Java, and Python parameters with a default value. An occurrence is left out
        if no value flows to it, and none flows from it.
    """
    if language not in _WALKERS:
        return []
    walker = _WALKERS[language]()
    walker.walk(root, {}, 0)
    return _normalize(walker.links)


@dataclass
class _Links:
    """The places from which one occurrence of a name in the code gets its value.

    A place is the position of a name's first byte in the code. For example, in `x = y`, x gets its value from
    the y at place 4. Then `sources` of x is {"computedFrom": {4: "y"}}.

    Attributes:
        name: The name.
        sources: `sources[relation][place]` is the name at the place. The relation is "computedFrom" if `name`
            is an assigned name or a loop variable. It is "comesFrom" if `name` is a used name, a declared
            name in Java, or a Python parameter with a default value.
    """

    name: str
    sources: dict[str, dict[int, str]] = field(default_factory=dict)


def _normalize(links: dict[int, _Links]) -> list[Item]:
    """Convert links between places in the code into the items of the data flow, in the order of the code.

    An item says from which names one occurrence of a name gets its value. An occurrence is left out if no
    value flows to it, and none flows from it. Names are replaced by var_0, var_1 and so on.

    Args:
        links: For each occurrence of a name, the places from which its value comes. The key is the position
            of the first byte of the occurrence.

    Returns:
        The items, such as ("var_1", "computedFrom", ("var_0",)): a name, the relation, and the names from
        which its value comes.
    """
    used = {place for link in links.values() for sources in link.sources.values() for place in sources}
    names: dict[str, str] = {}
    items = []
    for place, link in sorted(links.items()):
        for relation, sources in link.sources.items():
            if sources or place in used:
                found = dict.fromkeys(name for _, name in sorted(sources.items()))
                for name in (*found, link.name):
                    names.setdefault(name, f"var_{len(names)}")
                items.append((names[link.name], relation, tuple(names[name] for name in found)))
    return items


class _Walker:
    """Visitor of a syntax tree that finds the sources from which each name in the code gets its value.

    The method `walk` starts the visit, and the attribute `links` has the result. By default, the children of
    a node are visited in order. A subclass has a method `on_TYPE` for each type of node that needs another
    treatment. An example is `on_if_statement`.

    Attributes:
        links: For each occurrence of a name, the places from which its value comes. The key is the position
            of the first byte of the occurrence.
    """

    def __init__(self) -> None:
        self.links: dict[int, _Links] = {}
        self._loops = 0  # around the current node

    def walk(self, node: Node, table: _Table, depth: int) -> _Table:
        """Visit a node and all nodes below it, and record for each name from where its value comes.

        The result is added to the attribute `links`.

        Args:
            node: The node.
            table: A dict from each name to the places where it was last set before the node. A place is the
                index of a byte in the code. A name has several places if it was set in several branches of
                an `if`. The table is not changed.
            depth: The depth of the node in the syntax tree. Very deep nodes are ignored.

        Returns:
            A table of the same form, with the places where each name was last set before the node's end.
        """
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
        """Record a use of a name: data flows to it from the places where the name was last set.

        Args:
            leaf: The leaf of the syntax tree. If it is a keyword, an operator or a punctuation mark, nothing
                is recorded.
            table: A dict from each name to the places (indexes of bytes in the code) where the name was last
                set before the leaf. It is not changed.

        Returns:
            The table for the code after the leaf. Usually, this is `table` itself. If the leaf is an
            identifier that is not in `table`, its first use counts as the place where it was set: a copy of
            `table` with this place is returned.
        """
        name = _name(leaf)
        if not name:
            return table
        if name in table:
            self._link(leaf, COMES, dict.fromkeys(table[name], name))
            return table
        self._link(leaf, COMES, {})
        return {**table, name: [leaf.start_byte]} if leaf.type == "identifier" else table

    def _link(self, leaf: Node, relation: str, sources: dict[int, str]) -> None:
        link = self.links.setdefault(leaf.start_byte, _Links(_name(leaf)))
        link.sources.setdefault(relation, {}).update(sources)

    def _set(self, targets: Sequence[Node], values: Sequence[Node], table: _Table, relation: str) -> _Table:
        """Record an assignment: the value of each target comes from all names and literals on the right side.

        Args:
            targets: The syntax nodes to which values are assigned, such as `x` in `x = y + 1`.
            values: The syntax nodes of the assigned values, such as `y + 1`.
            table: A dict from each name to the places (indexes of bytes in the code) where the name was last
                set before the assignment. It is not changed.
            relation: "comesFrom" for a declaration in Java or the default value of a Python parameter;
                otherwise "computedFrom".

        Returns:
            A copy of the table, in which this assignment is the place where the targets were last set.
        """
        sources = {leaf.start_byte: _name(leaf) for value in values for leaf in _named_leaves(value)}
        for leaf in (leaf for target in targets for leaf in _named_leaves(target)):
            self._link(leaf, relation, sources)
            table = {**table, _name(leaf): [leaf.start_byte]}
        return table

    def _passes(self) -> Iterator[None]:
        """Decide how often a loop in the analyzed code is visited, and yield None once for each visit.

        The methods that visit a loop, such as `on_while_statement`, iterate over this generator. Usually, a
        loop is visited twice: in the second visit, a name can get its value from the previous iteration of
        the loop. A loop inside five or more other loops is visited only once, to save time.
        """
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
        """Record a Python assignment: visit the right side, then set the names on the left side.

        If both sides have equally many parts, each part on the left gets its value only from the
        corresponding part on the right. For example, in `a, b = c, d`, the value of a comes only from c.

        Args:
            left: The syntax node of the left side.
            right: The syntax node of the right side.
            table: A dict from each name to the places (indexes of bytes in the code) where the name was last
                set before the assignment. It is not changed.
            depth: The depth of the two nodes in the syntax tree.

        Returns:
            A copy of the table, in which this assignment is the place where the names on the left were last
            set.
        """
        targets, values = ([c for c in side.children if c.type != ","] for side in (left, right))
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
        """Visit a Python comprehension, such as `[f(x) for x in y]`: first its `for` clauses, then the rest.

        The `for` clauses come first because they set names that the rest uses.

        Args:
            node: The comprehension.
            table: A dict from each name to the places (indexes of bytes in the code) where the name was last
                set before the comprehension. It is not changed.
            depth: The depth of the node's children in the syntax tree.

        Returns:
            A table of the same form, with the places where each name was last set before the end of the
            comprehension.
        """
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
    """Merge the tables of alternative branches, such as the branches of an `if`, into one table.

    A table is a dict from each name to the places where the name was last set. After an `if`, a name may have
    been set in any of the branches. Therefore the merged table has the places of all tables.
    """
    united: dict[str, set[int]] = {}
    for table in tables:
        for name, places in table.items():
            united.setdefault(name, set()).update(places)
    return {name: sorted(places) for name, places in united.items()}


def _is_leaf(node: Node) -> bool:
    return not node.child_count or node.type in _LITERALS


def _name(leaf: Node) -> str:
    """Return the name or literal at a leaf of the syntax tree.

    The result is "" if the leaf is a keyword, an operator or a punctuation mark.
    """
    text = (leaf.text or b"").decode(errors="replace")
    return "" if text == leaf.type else text


def _named_leaves(node: Node) -> list[Node]:
    """Return the leaves below a node that are names or literals.

    Keywords, operators, punctuation marks and comments are left out.
    """
    found, stack = [], [node]
    while stack:
        inner = stack.pop()
        if _is_leaf(inner):
            if _name(inner) and "comment" not in inner.type:
                found.append(inner)
        else:
            stack += reversed(inner.children)
    return found
