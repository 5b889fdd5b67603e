"""Scopes of Java code: which variable each name means (Java Language Specification, 6.3 and 6.4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tree_sitter import Node

_CLASS_BODIES = frozenset("class_body interface_body enum_body annotation_type_body".split())
_BLOCKS = frozenset(
    "block constructor_body switch_block for_statement enhanced_for_statement catch_clause lambda_expression "
    "try_with_resources_statement method_declaration constructor_declaration "
    "compact_constructor_declaration".split()
)
_NAMED = (
    "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration "
    "method_declaration constructor_declaration compact_constructor_declaration enum_constant annotation "
    "annotation_type_element_declaration marker_annotation method_invocation".split()
)
_NOT_VARIABLES = {  # the fields in which an identifier is no variable, by the type of the parent
    **{kind: "name" for kind in _NAMED},
    "field_access": "field",
    "element_value_pair": "key",
}
_NEVER_VARIABLES = frozenset(
    "labeled_statement break_statement continue_statement scoped_identifier package_declaration "
    "import_declaration record_pattern module_declaration".split()
)


@dataclass(eq=False)
class Variable:
    """A variable: a local variable, a parameter, or a field.

    Attributes:
        name: The name.
        kind: "parameter", "variable", "pattern" or "field".
        type: The declared type as it is written, such as `int[]`; empty if none is written.
        declaration: The identifier in the declaration.
        scope: The node in which the name is known.
        uses: The identifiers that mean the variable, the declaration among them.
        obstacle: Why the variable cannot be renamed safely; empty if it can.
    """

    name: str
    kind: str
    type: str
    declaration: Node
    scope: Node
    uses: list[Node] = field(default_factory=list)
    obstacle: str = ""


@dataclass
class _Scope:
    """The names that a block or class declares."""

    node: Node
    may_inherit: bool = False
    names: dict[str, Variable] = field(default_factory=dict)


class JavaScopes:
    """The variables of a syntax tree, and which variable each identifier means.

    Args:
        root: The root of the syntax tree of a file.

    Attributes:
        variables: The parameters and local variables, in the order of their declarations.
        meaning: The variable of an identifier, by its first byte. Names of unknown fields are missing.
        fields: The fields that a class declares, by the id of the node of its body and by their names.
        places: The first bytes of the identifiers that name variables, known or not, by name and in order.
    """

    def __init__(self, root: Node) -> None:
        self.variables: list[Variable] = []
        self.meaning: dict[int, Variable] = {}
        self.fields: dict[int, dict[str, Variable]] = {}
        self.places: dict[str, list[int]] = {}
        self._scopes: list[_Scope] = []
        self._visit(root)

    def occurs(self, name: str, start: int, end: int) -> bool:
        """Return whether a name stands for a variable anywhere from byte `start` to byte `end`."""
        return any(start <= place < end for place in self.places.get(name, ()))

    def _visit(self, root: Node) -> None:
        """Visit the tree from the first node to the last, and keep the scopes that are open."""
        stack: list[tuple[Node | None, Node, int]] = [(root, root, 0)]
        while stack:
            node, parent, number = stack.pop()
            if node is None:
                self._scopes.pop()
                continue
            kind = node.type
            if kind == "identifier":
                self._identifier(node, parent, parent.field_name_for_child(number))
                continue
            if parent.type == "try_with_resources_statement" and kind in ("catch_clause", "finally_clause"):
                self._scopes[-1].names.clear()  # the resources are unknown here
            if kind in _CLASS_BODIES:
                self._scopes.append(_class_scope(node, parent))
                self.fields[node.id] = dict(self._scopes[-1].names)
                stack.append((None, node, 0))
            elif kind in _BLOCKS:
                self._scopes.append(_Scope(node))
                stack.append((None, node, 0))
            inner = [(child, node, i) for i, child in enumerate(node.children)]
            if kind == "enhanced_for_statement":  # the variable is unknown in the expression after the colon
                inner.sort(key=lambda item: node.field_name_for_child(item[2]) != "value")
            stack += reversed(inner)

    def _identifier(self, node: Node, parent: Node, name: str | None) -> None:
        """Declare the variable of an identifier, or look up which variable it means."""
        kind = parent.type
        if kind in _NEVER_VARIABLES or (name and name == _NOT_VARIABLES.get(kind)):
            return
        if kind == "method_reference" and node.start_byte != parent.start_byte:
            return
        self.places.setdefault(_text(node), []).append(node.start_byte)
        declared = _declared(node, parent, name)
        if declared is None:
            self._use(node, is_label=kind == "switch_label")
        elif declared[0] == "field":
            if known := self._scopes[-1].names.get(_text(node)):
                self.meaning[node.start_byte] = known
        else:
            self._declare(node, *declared)

    def _declare(self, node: Node, kind: str, type_: str) -> None:
        """Declare a parameter or local variable in the innermost scope."""
        scope = self._scopes[-1]
        variable = Variable(_text(node), kind, type_, node, scope.node, [node])
        if kind == "pattern":
            variable.obstacle = "the scope of a pattern's variable depends on conditions"
        scope.names[variable.name] = variable
        self.variables.append(variable)
        self.meaning[node.start_byte] = variable

    def _use(self, node: Node, *, is_label: bool) -> None:
        """Look up the variable that an identifier means."""
        name = _text(node)
        inherited = False  # whether a class on the way may have inherited a field of this name
        for scope in reversed(self._scopes):
            if variable := scope.names.get(name):
                if variable.kind != "field":
                    if inherited:
                        variable.obstacle = "a class inside may inherit a field of this name"
                    if is_label:
                        variable.obstacle = "a case label has this name"
                elif inherited:
                    return
                self.meaning[node.start_byte] = variable
                variable.uses.append(node)
                return
            inherited = inherited or scope.may_inherit


def _text(node: Node) -> str:
    """Return the text of a node."""
    return (node.text or b"").decode()


def _class_scope(body: Node, owner: Node) -> _Scope:
    """Return the scope of the body of a class, with its fields."""
    above = [child.type for child in owner.children]
    inherits = owner.type in ("object_creation_expression", "enum_constant") or bool(
        {"superclass", "super_interfaces", "extends_interfaces"} & set(above)
    )
    return _Scope(body, inherits, {field.name: field for field in _fields(body)})


def _fields(body: Node) -> Iterator[Variable]:
    """Yield the fields that the body of a class declares, and the constants of an enum."""
    members = list(body.children)
    for part in body.children:
        if part.type == "enum_body_declarations":
            members += part.children
    for member in members:
        if member.type in ("field_declaration", "constant_declaration"):
            for declarator in member.children_by_field_name("declarator"):
                if name := declarator.child_by_field_name("name"):
                    yield Variable(_text(name), "field", _type(member, declarator), name, body)
        elif member.type == "enum_constant" and (name := member.child_by_field_name("name")):
            yield Variable(_text(name), "field", "", name, body)
    if body.parent is not None and body.parent.type == "record_declaration":
        parameters = body.parent.child_by_field_name("parameters")
        for part in parameters.named_children if parameters is not None else ():
            if name := part.child_by_field_name("name"):
                yield Variable(_text(name), "field", _type(part, part), name, body)


def _declared(node: Node, parent: Node, name: str | None) -> tuple[str, str] | None:
    """Return the kind and type of the variable that an identifier declares; None if it declares none."""
    kind = parent.type
    if kind == "variable_declarator" and name == "name":
        declaration = parent.parent
        assert declaration is not None
        if declaration.type in ("field_declaration", "constant_declaration"):
            return "field", ""
        if declaration.type == "spread_parameter":
            return "parameter", _type(declaration, parent) + "[]"
        return "variable", _type(declaration, parent)
    if kind == "formal_parameter" and name == "name":
        above = parent.parent.parent if parent.parent is not None else None
        if above is not None and above.type == "record_declaration":
            return "field", ""
        return "parameter", _type(parent, parent)
    if kind == "inferred_parameters" or (kind == "lambda_expression" and name == "parameters"):
        return "parameter", ""
    if kind in ("catch_formal_parameter", "resource", "enhanced_for_statement") and name == "name":
        return "variable", _type(parent, parent)
    if kind == "instanceof_expression" and name == "name":
        return "pattern", ""
    if kind in ("type_pattern", "record_pattern_component"):
        return "pattern", ""
    return None


def _type(declaration: Node, declarator: Node) -> str:
    """Return the written type of a declaration, with the brackets after the name."""
    written = declaration.child_by_field_name("type")
    if written is None:  # the parameter `String... names`
        written = next((child for child in declaration.named_children if child.type.endswith("type")), None)
    dimensions = declarator.child_by_field_name("dimensions")
    text = _text(written) if written is not None else ""
    return "".join((text + (_text(dimensions) if dimensions is not None else "")).split())
