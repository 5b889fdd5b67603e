"""The methods, parameters and local variables of Java code that can be renamed safely."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.edits import Span
from simllm.perturb.code.java.parsing import (
    JavaUnit,
    children,
    field_child,
    find_nodes,
    required,
)
from simllm.perturb.code.java.scopes import Variable, may_inherit
from simllm.perturb.code.java.types import type_of
from simllm.perturb.code.units import CodeUnit, SkippedSite, Symbol, span_of
from simllm.perturb.code.values import kind_of_type

RESERVED = frozenset(
    "abstract assert boolean break byte case catch char class const continue default do double else enum "
    "extends final finally float for goto if implements import instanceof int interface long native new "
    "package private protected public return short static strictfp super switch synchronized this throw "
    "throws transient try void volatile while true false null _ "
    "var yield record sealed permits non when module open opens exports requires uses provides with to "
    "transitive".split()
)
# Methods of `Object`, of serialization, and the start of a program.
NEVER = frozenset(
    "main clone equals finalize getClass hashCode notify notifyAll toString wait readObject writeObject "
    "readResolve writeReplace readObjectNoData".split()
)
# Annotations that no tool reads together with the annotated name.
_HARMLESS = frozenset(
    b"@Nullable @NonNull @Nonnull @NotNull @SuppressWarnings @SafeVarargs @Deprecated".split()
)
_METHODS = ("method_declaration", "constructor_declaration")
_PARAMETERS = ("formal_parameter", "spread_parameter", "formal_parameters")


def symbols(unit: CodeUnit) -> Iterator[Symbol | SkippedSite]:
    """Yield each parameter, local variable and considered method, as a symbol or a skipped site.

    Of a file, only private methods are considered, because other files may call the others. Of a single
    method, the methods of classes inside are not considered.
    """
    assert isinstance(unit, JavaUnit)
    yield from _methods(unit)
    words = _annotation_words(unit)
    for variable in unit.scopes.variables:
        reason = variable.obstacle or _annotation(variable) or _record_constructor(variable)
        if variable.kind == "parameter" and variable.name.encode() in words:
            reason = "an annotation holds the name"
        if reason:
            yield SkippedSite(variable.declaration, reason, _kind(variable))
        else:
            uses = [span_of(use) for use in variable.uses]
            if variable.kind == "parameter":
                uses += _parameter_mentions(unit, variable)
            values = kind_of_type(type_of(unit, variable.declaration) or variable.type)
            yield Symbol(_kind(variable), variable.name, variable.declaration, tuple(sorted(uses)), values)


def _kind(variable: Variable) -> str:
    """Return the kind of the symbol, "parameter" or "variable"."""
    return "parameter" if variable.kind == "parameter" else "variable"


def _annotation(variable: Variable) -> str:
    """Return the reason why an annotation, as in `@Param String name`, forbids renaming; else empty."""
    parent = variable.declaration.parent
    if variable.kind != "parameter" or parent is None:
        return ""
    if parent.type == "variable_declarator":  # the parameter `String... names`
        parent = parent.parent
    found = [part for part in (parent.children if parent else ()) if part.type == "modifiers"]
    # A framework may bind a request or a column to the parameter's name.
    return "an annotation may read the name" if any(map(_has_annotation, found)) else ""


def _record_constructor(variable: Variable) -> str:
    """Return the reason not to rename a parameter of a record's constructor; empty for other variables."""
    node: Node | None = variable.declaration.parent
    while node is not None and node.type in ("variable_declarator", *_PARAMETERS):
        node = node.parent
    body = node.parent if node is not None and node.type == "constructor_declaration" else None
    record = body.parent if body is not None else None
    # In the canonical constructor, the parameters must have the names of the components.
    is_needed = record is not None and record.type == "record_declaration"
    return "a constructor of a record needs the names of the components" if is_needed else ""


def _annotation_words(unit: JavaUnit) -> set[bytes]:
    """Return the words in strings of annotations: `users` and `id` for `@GetMapping("/users/{id}")`."""
    words: set[bytes] = set()
    for annotation in find_nodes(unit.root, "annotation"):
        if b"@" + unit.text_of(required(annotation, "name")) not in _HARMLESS:
            for text in find_nodes(annotation, "string_literal"):
                # A framework may match such a word with the name of a parameter or method.
                words.update(re.findall(rb"[\w$]+", unit.text_of(text)))
    return words


def _has_annotation(modifiers: Node) -> bool:
    """Return whether a tool may read the declared name together with one of its annotations."""
    texts = [
        (part.text or b"").partition(b"(")[0] for part in modifiers.children if "annotation" in part.type
    ]
    return any(text not in _HARMLESS for text in texts)


# Text in which documentation quotes code: `{@code n + 1}` or `<code>n</code>`.
_QUOTED_CODE = re.compile(rb"\{@code\s([^{}]*)\}|<code>([^<]*)</code>")


def _parameter_mentions(unit: JavaUnit, variable: Variable) -> Iterator[Span]:
    """Yield the spans of a parameter's name in its method's documentation comment.

    They are `@param NAME`, and whole words in `{@code …}` and `<code>…</code>`.
    """
    method: Node | None = variable.declaration
    while method is not None and method.type not in _METHODS:
        if method.type in ("lambda_expression", "class_body"):
            return
        method = method.parent
    comment = method.prev_sibling if method is not None else None
    if comment is not None and _is_documentation(unit, comment):
        name = re.escape(variable.name.encode())
        yield from _matches(unit, comment, rb"@param\s+(" + name + rb")(?![\w$\x80-\xff])")
        yield from _quoted(unit, comment, rb"(?<![\w$.#\x80-\xff])(" + name + rb")(?![\w$\x80-\xff]|\s*\()")


def _method_mentions(unit: JavaUnit, method: Node, body: Node) -> Iterator[Span]:
    """Yield the spans of a method's name in documentation comments of its class.

    They are `{@link #NAME}`, `@see #NAME(int)` and `{@link CLASS#NAME}`, calls in `{@code NAME(…)}`, and
    `{@code NAME}` in the comment of the method itself.
    """
    name = unit.text_of(required(method, "name"))
    owner = body.parent
    if body.type == "enum_body_declarations" and owner is not None:
        owner = owner.parent
    class_name = field_child(owner, "name") if owner is not None and not unit.is_function else None
    prefix = rb"(?:" + re.escape(unit.text_of(class_name)) + rb")?" if class_name is not None else b""
    link = rb"(?:\{@link(?:plain)?|@see)\s+" + prefix + rb"#(" + re.escape(name) + rb")(?![\w$\x80-\xff])"
    call = rb"(?<![\w$.\x80-\xff])(" + re.escape(name) + rb")(?=\s*\()"
    for comment in find_nodes(unit.root, "block_comment"):
        if name not in unit.text_of(comment) or not _is_documentation(unit, comment):
            continue
        is_own = comment.next_sibling == method
        # The comment before a class speaks of the members of this class.
        above: Node | None = owner if owner is not None and comment.next_sibling == owner else comment
        while above is not None and above.id not in (body.id, owner.id if owner is not None else None):
            if above.type.endswith("_body") and _declares(unit, above, name):
                break
            above = above.parent
        else:
            if above is not None:
                yield from _matches(unit, comment, link)
                yield from _quoted(unit, comment, call)
                if is_own:
                    yield from _quoted(unit, comment, rb"^\s*(" + re.escape(name) + rb")\s*$")


def _is_documentation(unit: JavaUnit, comment: Node) -> bool:
    return comment.type == "block_comment" and unit.text_of(comment).startswith(b"/**")


def _matches(unit: JavaUnit, comment: Node, pattern: bytes) -> Iterator[Span]:
    """Yield the span of the first group of each match in a comment, unless it lies in the frame."""
    for match in re.finditer(pattern, unit.text_of(comment)):
        span = Span(comment.start_byte + match.start(1), comment.start_byte + match.end(1))
        if unit.holds(span):
            yield span


def _quoted(unit: JavaUnit, comment: Node, pattern: bytes) -> Iterator[Span]:
    """Yield the span of the first group of each match in code that a comment quotes, as `_matches` does."""
    for quoted in _QUOTED_CODE.finditer(unit.text_of(comment)):
        group = 1 if quoted[1] is not None else 2
        start = comment.start_byte + quoted.start(group)
        for match in re.finditer(pattern, quoted[group]):
            if unit.holds(span := Span(start + match.start(1), start + match.end(1))):
                yield span


def _methods(unit: JavaUnit) -> Iterator[Symbol | SkippedSite]:
    """Yield each considered method, as a symbol or a skipped site."""
    for method in find_nodes(unit.root, "method_declaration"):
        body = method.parent
        if body is None or (unit.is_function and (body.parent is None or body.parent.parent != unit.root)):
            continue
        modifiers = next((unit.text_of(c) for c in method.children if c.type == "modifiers"), b"")
        if not unit.is_function and b"private" not in modifiers.split():
            continue
        uses = _calls(unit, method, body)
        if isinstance(uses, str):
            yield SkippedSite(method, uses, "function")
        else:
            name = required(method, "name")
            spans = sorted({*uses, *_method_mentions(unit, method, body)})
            yield Symbol("function", unit.text_of(name).decode(), name, tuple(spans))


def _calls(unit: JavaUnit, method: Node, body: Node) -> list[Span] | str:
    """Return the spans of a method's name in its declaration and calls; or the reason not to rename it.

    Method references such as `this::run` count as calls. `body` is the class body that declares the method.
    """
    declared = required(method, "name")
    name = unit.text_of(declared)
    if name.decode() in NEVER:
        return "a method of this name has a meaning for Java"
    modifiers = [child for child in method.children if child.type == "modifiers"]
    if any(part.type == "native" for node in modifiers for part in node.children):
        return "a native method is found by its name"
    if any(map(_has_annotation, modifiers)):
        return "an annotation may read the name, or demands it"
    # The members after the constants of an enum have a node between them and the body.
    in_enum = body.parent if body.type == "enum_body_declarations" else None
    if not unit.is_function and may_inherit(in_enum or body):
        return "the class may inherit a method of the old or new name"
    # A string may be used for reflection, as in `getMethod("run")`.
    if any(unit.text_of(node).strip(b'"') == name for node in find_nodes(unit.root, "string_literal")):
        return "a string holds the name"
    if name in _annotation_words(unit):
        return "an annotation holds the name"
    count = len(children(required(method, "parameters")))
    found = [span_of(declared)]
    for node in find_nodes(unit.root, "method_declaration"):
        if unit.text_of(required(node, "name")) == name and node.id != method.id and node.parent == body:
            # The calls of an overloaded method are not told apart by the types of their arguments.
            return "another method has the same name"
    for node in find_nodes(unit.root, "method_invocation", "method_reference"):
        is_call = node.type == "method_invocation"
        named = required(node, "name") if is_call else node.children[-1]
        if named.type != "identifier" or unit.text_of(named) != name:
            continue
        receiver = field_child(node, "object") if is_call else node.children[0]
        owner = _owner(unit, node, receiver, body, name)
        if owner is None:
            return "a call may mean another method of this name"
        if owner:
            # The call means another overload, or the method has variable arguments.
            if is_call and len(children(required(node, "arguments"))) != count:
                return "a call has another number of arguments"
            found.append(span_of(named))
    return found


def _owner(unit: JavaUnit, node: Node, receiver: Node | None, body: Node, name: bytes) -> bool | None:
    """Return whether a call surely means a method of the class with this body; None if this is unknown.

    `receiver` is the expression before the method's name: `super.run()` gives False, and `other.run()` None,
    because the class of `other` is not known.
    """
    if receiver is not None and receiver.type == "super":
        return False
    if receiver is not None and receiver.type == "object_creation_expression":
        inner = next((child for child in receiver.children if child.type == "class_body"), None)
        return False if inner is not None else None
    class_name = field_child(body.parent, "name") if body.parent is not None else None
    if receiver is not None and receiver.type != "this":
        if class_name is not None and unit.text_of(receiver) == unit.text_of(class_name):
            return not unit.is_function or None
        return False if receiver.type == "string_literal" else None
    above = node.parent
    # A class between may have a method of this name.
    while above is not None and above.id != body.id:
        if above.type.endswith("_body") and above.type != "constructor_body":
            return False if receiver is not None or _declares(unit, above, name) else None
        above = above.parent
    return above is not None


def _declares(unit: JavaUnit, body: Node, name: bytes) -> bool:
    """Return whether a class body declares a method of a given name."""
    methods = [child for child in body.children if child.type == "method_declaration"]
    return any(unit.text_of(required(child, "name")) == name for child in methods)
