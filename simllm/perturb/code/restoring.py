"""The old names of renamed symbols, given back in what others write about a variant.

An answer of a model about a variant may hold prose, fenced code, diffs, and functions that it changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from tree_sitter import Node

from simllm.code.languages.language import find_language
from simllm.errors import InputError
from simllm.perturb.code.edits import Span
from simllm.perturb.code.java.parsing import field_child, find_nodes, required
from simllm.perturb.code.python import parsing
from simllm.perturb.code.python.roles import BINDING, identifier_roles
from simllm.perturb.code.python.scopes import Scopes, Variable

# A fence may stand in a quotation (`> `), or be indented in a list.
_FENCE = re.compile(r"[ \t>]*(?:```|~~~)")
_CODE = re.compile(r"[{};=]|^[-+ \t]*(?:def|class|return|import|from)\b|^(?:---|\+\+\+|@@|diff) ", re.M)
# Plain prose such as `value` or `a, b` is valid Python, so it must not be tried as code.
_WORDS_ONLY = re.compile(r"[\w\s.,]*")
# Strings and comments, which are skipped in code that cannot be parsed.
_OPAQUE = (
    r'"""[^"]*(?:"(?!"")[^"]*)*(?:"""|\Z)|' + r"'''[^']*(?:'(?!'')[^']*)*(?:'''|\Z)|"
    r'"(?:\\.|[^"\\\n])*"?|'
    + r"'(?:\\.|[^'\\\n])*'?|"
    + r"#[^\n]*|//[^\n]*|/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|\Z)"
)
# An answer may hold a whole file, or only members of a class.
_JAVA_FRAMES = ((b"", b""), (b"class Unit {\n", b"\n}\n"))


def rename_text(text: str, names: Mapping[str, str]) -> str:
    """Replace old names by new names in a text, such as a stack trace; only whole words are replaced."""
    if not names:
        return text
    # `\b` would not do, because `$` may be part of a name in Java.
    return re.sub(rf"(?<![\w$])(?:{_any(names)})(?![\w$])", lambda found: names[found[0]], text)


def restore(text: str, names: Mapping[str, str]) -> str:
    """Give renamed symbols their old names again, in a text about the variant or in the variant itself.

    `names` maps old to new names, as `Rewrite.names` does. All whole words that equal a new name are
    replaced. For code that somebody else wrote, use `restore_functions`.
    """
    # This is safe for the variant itself, because its source does not contain the new names.
    return rename_text(text, {new: old for old, new in names.items()})


def restore_functions(text: str, variant: str, language: str, names: Mapping[str, str]) -> str:
    """Give renamed functions their old names again, in an answer about a variant.

    In code, only functions are restored, where the code defines or calls them. Parameters and local variables
    keep their new names, on which the behaviour does not depend. In prose, all names are restored that cannot
    be ordinary words: `maxWidth`, `v0`, names in backquotes, and functions before a parenthesis.
    """
    old = {new: old for old, new in names.items()}
    called = {new: old for old, new in renamed_functions(variant, language, names).items()}
    if not old or not any(name in text for name in old):
        return text
    restored = {"java": _restored_java, "python": _restored_python}[language]
    return "".join(_restored_part(part, is_fenced, restored, called, old) for part, is_fenced in _parts(text))


def renamed_functions(variant: str, language: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return the new names, by old names, of those renamed symbols that are functions of a variant."""
    functions = _functions(variant, language)
    return {old: new for old, new in names.items() if new in functions}


def uses_new_function(text: str, variant: str, language: str, names: Mapping[str, str]) -> bool:
    """Return whether an answer still defines or calls a function of a variant by its new name."""
    left = _functions(variant, language) & set(names.values())
    return bool(left) and re.search(rf"(?<![\w$.])(?:{_any(left)})(?=[ \t]*\()", text) is not None


def _any(names: Mapping[str, str] | frozenset[str]) -> str:
    """Return a regular expression for any of one or more names."""
    # The longest name first, because the first alternative that fits wins.
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


@lru_cache(1024)
def _functions(variant: str, language: str) -> frozenset[str]:
    """Return the names of the functions that a variant defines; none if it cannot be parsed."""
    if language == "python":
        try:
            unit = parsing.parse(variant.encode(errors="replace"))
        except (InputError, RecursionError):
            return frozenset()
        roles = identifier_roles(unit)
        return frozenset(unit.text_of(node).decode() for node, role in roles if role == "function")
    root = _java_tree(variant.encode(errors="replace"))[0]
    declared = find_nodes(root, "method_declaration") if root else []
    return frozenset((required(node, "name").text or b"").decode() for node in declared)


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Split an answer at its code fences; yield each part, and whether it stands between fences."""
    part, is_fenced = "", False
    for line in text.splitlines(keepends=True):
        if _FENCE.match(line):
            yield part, is_fenced
            yield line, False
            part, is_fenced = "", not is_fenced
        else:
            part += line
    yield part, is_fenced


def _restored_part(
    part: str,
    is_fenced: bool,
    restored: Callable[[str, Mapping[str, str]], str | None],
    called: Mapping[str, str],
    old: Mapping[str, str],
) -> str:
    """Restore names in a part of an answer, after deciding whether it is code or prose."""
    found = restored(part, called) if is_fenced or not _WORDS_ONLY.fullmatch(part) else None
    if found is not None:
        return found
    if is_fenced or _CODE.search(part):
        return _restored_calls(part, called)
    return _restored_prose(part, called, old)


def _restored_calls(part: str, called: Mapping[str, str]) -> str:
    """Restore the names of called functions in code that cannot be parsed, such as a diff."""
    if not called:
        return part
    pattern = rf"{_OPAQUE}|(?<![\w$.])(?P<name>{_any(called)})(?=[ \t]*\()"
    return re.sub(pattern, lambda found: called[found[0]] if found["name"] else found[0], part)


def _restored_prose(part: str, called: Mapping[str, str], old: Mapping[str, str]) -> str:
    """Restore the names in prose that cannot be ordinary words."""
    # `v0` and `maxWidth` cannot be ordinary words, but `width`, `Width` and `v` can.
    marked = {name for name in old if not name.isalpha() or not (name[1:].islower() or len(name) == 1)}
    # The whole answer is the name of a function.
    marked |= {part.strip()} & called.keys()

    def replaced(found: re.Match[str]) -> str:
        name, before, after = found[0], part[: found.start()][-1:], part[found.end() :][:1]
        is_name = name in marked or (before == after == "`") or (name in called and after == "(")
        return old[name] if is_name else name

    return re.sub(rf"(?<![\w$.])(?:{_any(old)})(?![\w$])", replaced, part)


def _replaced(text: bytes, spans: Mapping[Span, str]) -> str:
    for span, name in sorted(spans.items(), reverse=True):
        text = text[: span.start] + name.encode() + text[span.end :]
    return text.decode()


def _span(node: Node, shift: int = 0) -> Span:
    return Span(node.start_byte - shift, node.end_byte - shift)


def _restored_python(part: str, called: Mapping[str, str]) -> str | None:
    """Restore the names of functions in Python code; None if the code cannot be parsed."""
    try:
        unit = parsing.parse(part.encode())
        scopes = Scopes(unit)
    except (InputError, UnicodeEncodeError, RecursionError, SyntaxError):
        return None
    spans: dict[Span, str] = {}
    # The names of a class are used as attributes, which are not resolved.
    variables = [one for one in scopes.variables if one.scope.node.type != "class_definition"]
    for new, old in called.items():
        known = [one for one in variables if one.name == new and not one.scope.reflects]
        # The function of the module counts before nested functions of this name.
        own = [one for one in known if one.scope is scopes.module] or known
        for variable in own:
            if _is_function(scopes, variable) and not _is_captured(scopes, variable, old):
                spans |= {_span(use.node, unit.source.start): old for use in variable.uses}
                spans |= {_span(node, unit.source.start): old for node in _own_methods(scopes, variable)}
    return _replaced(part.encode(), spans)


def _is_function(scopes: Scopes, variable: Variable) -> bool:
    """Return whether a variable is a function of this code, or a function of other code that is called."""
    roles = {use.role for use in variable.uses} & BINDING
    is_free = not roles and variable.scope is scopes.module
    return scopes.is_known(variable) and (roles == {"function"} or is_free)


def _is_captured(scopes: Scopes, variable: Variable, old: str) -> bool:
    """Return whether a variable would be confused with another one under its old name."""
    places = {variable.scope}
    for use in variable.uses:
        scope = use.scope
        while scope is not variable.scope and scope.parent is not None:
            places.add(scope)
            scope = scope.parent
    others = (one for one in scopes.variables if one.name == old)
    return old in scopes.unresolved or any(one.scope in places for one in others)


def _own_methods(scopes: Scopes, variable: Variable) -> Iterator[Node]:
    """Yield the name in each `self.NAME` or `cls.NAME`, if the function NAME is a method."""
    definitions = [use.node.parent for use in variable.uses if use.role == "function"]
    first = [node.child_by_field_name("parameters") for node in definitions if node is not None]
    if not any(node and re.match(rb"\(\s*(?:self|cls)\b", node.text or b"") for node in first):
        return
    for node in scopes.attributes:
        above = node.parent
        if (node.text or b"").decode() == variable.name and above is not None and above.type == "attribute":
            owner = above.child_by_field_name("object")
            if owner is not None and owner.text in (b"self", b"cls"):
                yield node


def _java_tree(text: bytes) -> tuple[Node | None, int]:
    """Parse Java code, possibly members without a class; return its root and the length of an added frame."""
    for before, after in _JAVA_FRAMES:
        root = find_language("java").parse(before + text + after)
        if not root.has_error and root.named_children:
            return root, len(before)
    return None, 0


def _restored_java(part: str, called: Mapping[str, str]) -> str | None:
    """Restore the names of methods in Java code; None if the code cannot be parsed."""
    try:
        root, shift = _java_tree(part.encode())
    except UnicodeEncodeError:
        return None
    if root is None:
        return None
    methods = find_nodes(root, "method_declaration")
    calls = find_nodes(root, "method_invocation", "method_reference")
    taken = {_method_name(node).text for node in (*methods, *calls)}
    spans: dict[Span, str] = {}
    for new, old in called.items():
        declared = [node for node in methods if _method_name(node).text == new.encode()]
        own = [node for node in declared if _is_member(node)]
        # The old name is used for something else, or two classes define the method.
        if old.encode() in taken or len({node.parent.id for node in own if node.parent}) > 1:
            continue
        bodies = {node.parent.id: node in own for node in declared if node.parent}
        uses = [
            node for node in calls if _method_name(node).text == new.encode() and _means_own(node, bodies)
        ]
        spans |= {_span(_method_name(node), shift): old for node in (*own, *uses)}
    return _replaced(part.encode(), spans)


def _method_name(node: Node) -> Node:
    """Return the name in a declaration, a call or a reference of a Java method."""
    return node.children[-1] if node.type == "method_reference" else required(node, "name")


def _is_member(node: Node) -> bool:
    """Return whether a Java method belongs to a class of the file, and not to a class inside a method."""
    above = node.parent
    while above is not None and (above.type.endswith(("_body", "_declaration", "_declarations"))):
        if above.type == "method_declaration":
            return False
        above = above.parent
    return above is not None and above.type == "program"


def _means_own(node: Node, bodies: Mapping[int, bool]) -> bool:
    """Return whether a call, or a reference such as `this::run`, surely means the renamed method.

    `bodies` has the id of each class body that declares a method of this name, and whether it is the renamed
    one.
    """
    receiver = field_child(node, "object") if node.type == "method_invocation" else node.children[0]
    above = node.parent
    classes = []
    while above is not None:
        name = above.child_by_field_name("name") if above.type.endswith("_declaration") else None
        classes.append(name.text if name is not None else None)
        if above.id in bodies:
            if receiver is None or receiver.type == "this":
                return bodies[above.id]
        elif receiver is not None and receiver.type == "this" and above.type in ("class_body", "enum_body"):
            return not bodies
        above = above.parent
    if receiver is None or receiver.type == "this":
        return not any(bodies.values())
    return receiver.type == "identifier" and receiver.text in classes and any(bodies.values())
