"""Name resolution for Java: the variable to which each identifier refers.

The rules are those of the Java Language Specification, sections 6.3 (scopes) and 6.4 (shadowing).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property

from tree_sitter import Node, Query, QueryCursor

from simllm.code.languages.language import load_grammar

_NAMED = (
    "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration "
    "method_declaration constructor_declaration compact_constructor_declaration enum_constant annotation "
    "annotation_type_element_declaration marker_annotation method_invocation"
)
_WITH_NAMES = "labeled_statement break_statement continue_statement scoped_identifier package_declaration "
_WITH_NAMES += "import_declaration record_pattern module_declaration"
_QUERY = (
    """
(identifier) @name
[(class_body) (interface_body) (enum_body) (annotation_type_body)] @class
[(block) (constructor_body) (switch_block) (for_statement) (enhanced_for_statement) (catch_clause)
 (lambda_expression) (try_with_resources_statement) (method_declaration) (constructor_declaration)
 (compact_constructor_declaration)] @scope
(field_access field: (identifier) @other)
(element_value_pair key: (identifier) @other)
(method_reference "::" (identifier) @other)
(switch_label (identifier) @label)
(field_declaration declarator: (variable_declarator name: (identifier) @field))
(constant_declaration declarator: (variable_declarator name: (identifier) @field))
(record_declaration parameters: (formal_parameters (formal_parameter name: (identifier) @field)))
(record_declaration parameters:
  (formal_parameters (spread_parameter (variable_declarator name: (identifier) @field))))
(formal_parameter name: (identifier) @parameter)
(spread_parameter (variable_declarator name: (identifier) @parameter))
(inferred_parameters (identifier) @parameter)
(lambda_expression parameters: (identifier) @parameter)
(local_variable_declaration declarator: (variable_declarator name: (identifier) @variable))
(catch_formal_parameter name: (identifier) @variable)
(resource name: (identifier) @variable)
(enhanced_for_statement name: (identifier) @variable)
(instanceof_expression name: (identifier) @pattern)
(type_pattern (identifier) @pattern)
(record_pattern_component (identifier) @pattern)
"""
    + "".join(f"({kind} name: (identifier) @other)\n" for kind in _NAMED.split())
    + "".join(f"({kind} (identifier) @other)\n" for kind in _WITH_NAMES.split())
)
_DECLARED = ("pattern", "variable", "parameter")


@dataclass(eq=False)
class Variable:
    """A local variable, a parameter, or a field of a class.

    Attributes:
        kind: "parameter", "variable" (local), "pattern" (declared by a pattern such as `x instanceof A a`) or
            "field".
        declaration: The identifier in the declaration.
        scope: The syntax node in which the variable is declared, such as a block or a class body.
        uses: All identifiers that refer to the variable, including the one in the declaration.
        obstacle: The reason why the variable cannot be renamed safely; empty if it can be.
    """

    name: str
    kind: str
    declaration: Node
    scope: Node
    uses: list[Node] = field(default_factory=list)
    obstacle: str = ""

    @cached_property
    def type(self) -> str:
        """The declared type without spaces, such as `int[]`; empty if the declaration has no type."""
        node: Node | None = self.declaration.parent
        dimensions = node.child_by_field_name("dimensions") if node is not None else None
        if node is not None and node.type == "variable_declarator":
            node = node.parent
        if node is None or self.kind == "pattern":
            return ""
        written = node.child_by_field_name("type")
        many = node.type == "spread_parameter"
        # The parameter `String... names` has no child in the role of the type.
        if many:
            written = next((child for child in node.named_children if child.type.endswith("type")), None)
        text = _text(written) if written is not None else ""
        return "".join((text + (_text(dimensions) if dimensions else "")).split()) + "[]" * many


@dataclass
class _Scope:
    """A part of the code, such as a block or class body, with the variables that it declares.

    Attributes:
        end: The index after the last byte of `node`.
        may_inherit: Whether the scope is a class that may inherit fields that are declared elsewhere.
        start: The first byte at which the variables are visible: usually that of `node`, but in a `for` loop
            over a collection that of the body.
        stop: The index after the last such byte: usually `end`, but in a `try` with resources the end of its
            block.
    """

    node: Node
    end: int
    may_inherit: bool = False
    names: dict[str, Variable] = field(default_factory=dict)
    start: int = 0
    stop: int = 0


class Scopes:
    """All variables in a syntax tree, and the variable to which each identifier refers.

    Attributes:
        variables: The parameters and local variables, in the order of their declarations; no fields.
        meaning: The variable of each identifier, by the identifier's first byte. Identifiers whose
            declaration is unknown, such as inherited fields, are missing.
        fields: The declared fields of each class, by the id of the class body's node and by name.
        places: The first byte of each identifier of a variable, by name, even if its declaration is unknown.
    """

    def __init__(self, root: Node, text: bytes) -> None:
        self.variables: list[Variable] = []
        self.meaning: dict[int, Variable] = {}
        self.fields: dict[int, dict[str, Variable]] = {}
        self.places: dict[str, list[int]] = {}
        self._scopes: list[_Scope] = []
        found = QueryCursor(_query()).captures(root)
        roles = {
            node.start_byte: kind
            for kind in (*_DECLARED, "field", "label", "other")
            for node in found.get(kind, ())
        }
        nodes = [
            (node.start_byte, -node.end_byte, kind, node)
            for kind in ("class", "scope", "name")
            for node in found.get(kind, ())
        ]
        # At the same start, the outer node has the greater end, and so comes first.
        for start, end, kind, node in sorted(nodes, key=lambda item: item[:2]):
            while self._scopes and self._scopes[-1].end <= start:
                self._scopes.pop()
            if kind == "name":
                self._identifier(node, start, text[start:-end].decode(), roles.get(start, ""))
            else:
                self._open(node, -end, is_class=kind == "class")

    def occurs(self, name: str, start: int, end: int) -> bool:
        """Return whether a variable of this name occurs from byte `start` up to `end`."""
        return any(start <= place < end for place in self.places.get(name, ()))

    def _open(self, node: Node, end: int, *, is_class: bool) -> None:
        """Enter a scope that ends before byte `end`."""
        scope = _Scope(node, end, start=node.start_byte, stop=end)
        if is_class:
            scope.may_inherit = may_inherit(node)
            # Fields are visible before their declaration, so all are recorded when their class begins.
            scope.names = {variable.name: variable for variable in _fields(node)}
            self.fields[node.id] = scope.names
        elif node.type in ("enhanced_for_statement", "try_with_resources_statement"):
            body = node.child_by_field_name("body")
            if body is not None and node.type == "enhanced_for_statement":
                scope.start = body.start_byte
            elif body is not None:
                scope.stop = body.end_byte
        self._scopes.append(scope)

    def _identifier(self, node: Node, start: int, name: str, role: str) -> None:
        """Record an identifier that begins at byte `start`, by its role.

        "parameter", "variable" and "pattern" declare such a variable; "field" declares a field, which `_open`
        has recorded; "label" is a use as a `case` label, "" any other use, and "other" names no variable.
        """
        if role == "other":
            return
        self.places.setdefault(name, []).append(start)
        if role in _DECLARED:
            scope = self._scopes[-1]
            variable = Variable(name, role, node, scope.node, [node])
            if role == "pattern":
                # `if (!(x instanceof A a)) return;` makes `a` visible after the `if`.
                variable.obstacle = "the scope of a pattern's variable depends on conditions"
            scope.names[name] = self.meaning[start] = variable
            self.variables.append(variable)
        elif role != "field":
            self._look_up(node, start, name, is_label=role == "label")

    def _look_up(self, node: Node, start: int, name: str, *, is_label: bool) -> None:
        """Find the variable of an identifier from the innermost scope outwards, and record the use.

        If the identifier may also mean something else, the `obstacle` of the variable is set.
        """
        inherited = False  # whether an inner class may have inherited a field of this name
        pattern = None  # the variable of an inner pattern with this name, which may be out of scope
        for scope in reversed(self._scopes):
            variable = scope.names.get(name)
            if variable is not None and scope.start <= start < scope.stop:
                if pattern is not None and variable.kind != "field":
                    variable.obstacle = "a pattern in a class inside declares a variable of this name"
                elif inherited and variable.kind != "field":
                    variable.obstacle = "a class inside may inherit a field of this name"
                elif is_label and variable.kind != "field":
                    variable.obstacle = "a case label has this name"
                if pattern is None and not inherited:
                    self.meaning[start] = variable
                    variable.uses.append(node)
                if variable.kind != "pattern":
                    return
                # The variable of a pattern may be out of scope here, so the search goes on.
                pattern = variable
            inherited = inherited or scope.may_inherit


@cache
def _query() -> Query:
    return Query(load_grammar("tree_sitter_java", "language"), _QUERY)


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def may_inherit(body: Node) -> bool:
    """Return whether the class with this body may inherit members that are declared elsewhere."""
    owner = body.parent
    # An anonymous class, or the body of an enum constant, extends the class that it instantiates.
    if owner is None or owner.type in ("object_creation_expression", "enum_constant"):
        return True
    return any(
        child.type in ("superclass", "super_interfaces", "extends_interfaces") for child in owner.children
    )


def _fields(body: Node) -> Iterator[Variable]:
    """Yield the fields that a class body declares, including enum constants and record components."""
    members = list(body.named_children)
    for part in body.named_children:
        # In an enum, the members after the constants have a node of their own.
        if part.type == "enum_body_declarations":
            members += part.named_children
    for member in members:
        if member.type in ("field_declaration", "constant_declaration"):
            names = [part.child_by_field_name("name") for part in member.children_by_field_name("declarator")]
        elif member.type == "enum_constant":
            names = [member.child_by_field_name("name")]
        else:
            continue
        yield from (Variable(_text(name), "field", name, body) for name in names if name is not None)
    if body.parent is not None and body.parent.type == "record_declaration":
        parameters = body.parent.child_by_field_name("parameters")
        for part in parameters.named_children if parameters is not None else ():
            # The component `String... names`.
            if part.type == "spread_parameter":
                part = part.named_children[-1]
            if (name := part.child_by_field_name("name")) is not None:
                yield Variable(_text(name), "field", name, body)
