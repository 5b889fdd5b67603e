"""Name resolution for Java: find the variable to which each identifier refers.

The rules are those of the Java Language Specification, sections 6.3 (scopes) and 6.4 (shadowing).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property

from tree_sitter import Node, Query, QueryCursor

from simllm.code.languages.tree_sitter_parser import load_grammar

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
        name: The name.
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
        if many:  # the parameter `String... names`
            written = next((child for child in node.named_children if child.type.endswith("type")), None)
        text = _text(written) if written is not None else ""
        return "".join((text + (_text(dimensions) if dimensions else "")).split()) + "[]" * many


@dataclass
class _Scope:
    """A scope: a part of the code, such as a block or class body, with the variables that it declares.

    Attributes:
        node: The syntax node of the scope.
        end: The index of the first byte after `node`.
        may_inherit: Whether the scope is a class that may inherit fields that are declared elsewhere.
        names: The declared variables, by name.
        start: The index of the first byte at which the variables are visible. Usually, this is the start of
            `node`; in a `for` loop over a collection, it is the start of the loop body.
        stop: The index of the first byte at which the variables are no longer visible. Usually, this is
            `end`; in a `try` with resources, it is the end of the `try` block.
    """

    node: Node
    end: int
    may_inherit: bool = False
    names: dict[str, Variable] = field(default_factory=dict)
    start: int = 0
    stop: int = 0


class JavaScopes:
    """All variables in a syntax tree, and the variable to which each identifier refers.

    Args:
        root: The root of the syntax tree of a file.
        text: The bytes of the file.

    Attributes:
        variables: The parameters and local variables, in the order of their declarations. Fields are only in
            `fields`.
        meaning: For each identifier, the variable to which it refers. The key is the index of the
            identifier's first byte in `text`. Identifiers whose declaration is unknown, such as inherited
            fields, are missing.
        fields: The declared fields of each class. The outer key is the id of the class body's node; the inner
            key is the name of the field.
        places: All occurrences of variables, even if their declaration is unknown. The key is the name of a
            variable. The value lists the index of the first byte of each identifier with this name.
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
        for start, end, kind, node in sorted(nodes, key=lambda item: item[:2]):
            while self._scopes and self._scopes[-1].end <= start:
                self._scopes.pop()
            if kind == "name":
                self._identifier(node, start, text[start:-end].decode(), roles.get(start, ""))
            else:
                self._open(node, -end, is_class=kind == "class")

    def occurs(self, name: str, start: int, end: int) -> bool:
        """Return whether a variable with a given name occurs in a range of the code.

        Args:
            name: The name.
            start: The index of the first byte of the range.
            end: The index of the byte after the range.
        """
        return any(start <= place < end for place in self.places.get(name, ()))

    def _open(self, node: Node, end: int, *, is_class: bool) -> None:
        """Enter a scope, such as a block or the body of a class.

        Args:
            node: The syntax node of the scope.
            end: The index of the first byte after the node.
            is_class: Whether the scope is the body of a class.
        """
        scope = _Scope(node, end, start=node.start_byte, stop=end)
        if is_class:
            scope.may_inherit = may_inherit(node)
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
        """Record an identifier if it declares or uses a variable.

        Args:
            node: The identifier.
            start: The index of the first byte of the identifier.
            name: The text of the identifier.
            role: The role of the identifier, one of these:
                "parameter", "variable" or "pattern": it declares a variable of this kind.
                "field": it declares a field; only the position of the identifier is recorded, because the
                    fields of a class were recorded at the start of its body.
                "label": it uses a variable as a `case` label.
                "" (empty): it uses a variable in any other way.
                "other": it does not name a variable; nothing is recorded.
        """
        if role == "other":
            return
        self.places.setdefault(name, []).append(start)
        if role in _DECLARED:
            scope = self._scopes[-1]
            variable = Variable(name, role, node, scope.node, [node])
            if role == "pattern":
                variable.obstacle = "the scope of a pattern's variable depends on conditions"
            scope.names[name] = self.meaning[start] = variable
            self.variables.append(variable)
        elif role != "field":
            self._look_up(node, start, name, is_label=role == "label")

    def _look_up(self, node: Node, start: int, name: str, *, is_label: bool) -> None:
        """Find the variable to which an identifier refers, and add the identifier to the variable's uses.

        The scopes are searched from the innermost one outwards. It may be unclear whether the identifier
        refers to a local variable, or to something else with the same name, such as an inherited field. Then
        the local variable must not be renamed, and the attribute `obstacle` of the variable is set to the
        reason.

        Args:
            node: The identifier.
            start: The index of the first byte of the identifier.
            name: The text of the identifier.
            is_label: Whether the identifier is a `case` label, which may also be a constant of an enum.
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
                pattern = variable
            inherited = inherited or scope.may_inherit


@cache
def _query() -> Query:
    """Compile the tree-sitter query that finds identifiers and scopes."""
    return Query(load_grammar("tree_sitter_java", "language"), _QUERY)


def _text(node: Node) -> str:
    """Return the source text of a syntax node."""
    return (node.text or b"").decode()


def may_inherit(body: Node) -> bool:
    """Return whether a class may inherit members that are declared elsewhere, as with `extends`.

    Args:
        body: The syntax node of the class body.
    """
    owner = body.parent
    if owner is None or owner.type in ("object_creation_expression", "enum_constant"):
        return True
    return any(
        child.type in ("superclass", "super_interfaces", "extends_interfaces") for child in owner.children
    )


def _fields(body: Node) -> Iterator[Variable]:
    """Yield the fields that a class body declares, including enum constants and record components."""
    members = list(body.named_children)
    for part in body.named_children:
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
            if part.type == "spread_parameter":  # the component `String... names`
                part = part.named_children[-1]
            if (name := part.child_by_field_name("name")) is not None:
                yield Variable(_text(name), "field", name, body)
