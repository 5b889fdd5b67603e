"""The functions, parameters and local variables of Python code that can be renamed safely."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from simllm.perturb.code.edits import Span
from simllm.perturb.code.python.parsing import captures, children, is_indented, required
from simllm.perturb.code.python.roles import BINDING
from simllm.perturb.code.python.scopes import Scopes, Variable, is_opaque
from simllm.perturb.code.python.types import ValueGuesses
from simllm.perturb.code.units import CodeUnit, SkippedSite, Symbol, span_of

_HEADING = re.compile(rb"[ \t]*(?:Args|Arguments|Parameters):[ \t]*")
_UNDERLINED = re.compile(rb"(?<=\n)([ \t]*)(?:Other )?Parameters[ \t]*\r?\n\1-{3,}[ \t]*\r?(?=\n)")


def docstring(function: Node) -> Node | None:
    """Return a function's docstring, which may be several adjacent strings; None if there is none."""
    first = children(required(function, "body"))[0]
    node = first.children[0] if first.type == "expression_statement" else first
    while node.type == "parenthesized_expression":
        node = children(node)[0]
    return node if node.type in ("string", "concatenated_string") else None


def _parameter_mentions(unit: CodeUnit, function: Node, name: str) -> Iterator[Span]:
    """Yield the span of each mention of a parameter where a docstring describes it.

    The styles are `:param x:` (Sphinx), a list under `Args:` (Google), and a list under the underlined
    heading `Parameters` (NumPy). `x` in backquotes and ``x + 1`` in double ones count, too.
    """
    node = docstring(function)
    if node is None:
        return
    text, word = unit.text_of(node), re.escape(name.encode())
    # A set, because a docstring that mixes styles may match twice at one place.
    found = {*_fields(text, word), *_entries(text, word), *_underlined(text, word)}
    found.update(_quoted(text, word))
    for start, end in found:
        yield Span(node.start_byte + start, node.start_byte + end)


def _quoted(text: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    """Yield the positions of an escaped name in backquotes without a role, alone or in double ones."""
    for code in re.finditer(
        rb"(?<![`:\w\\\x80-\xff])(?:``([^`]+)``|`(" + word + rb")`)(?![`\w\x80-\xff])", text
    ):
        if code[2]:
            yield code.span(2)
            continue
        for match in re.finditer(rb"(?<![\w.\x80-\xff])" + word + rb"(?![\w\x80-\xff]|[ \t]*\()", code[1]):
            yield code.start(1) + match.start(), code.start(1) + match.end()


def _function_mentions(unit: CodeUnit, scope: Node, name: str) -> Iterator[Span]:
    """Yield the span of each mention of a function in the comments and docstrings inside a node.

    The styles are ``:func:`run` ``, with other roles for functions, and `run()` in backquotes.
    """
    word = re.escape(name.encode())
    role = rb":(?:py:)?(?:func|meth|any|obj):`(?:[^`<>]*<)?[~!]?\.?(" + word + rb")(?:\(\))?>?`"
    call = rb"(?<![`:\w\\\x80-\xff])``?(" + word + rb")\([^`]*\)``?(?![`\w\x80-\xff])"
    found = captures(unit, "(comment) @comment (function_definition) @function")
    texts = [*found.get("comment", []), *filter(None, map(docstring, found.get("function", [])))]
    for node in texts:
        if scope.start_byte <= node.start_byte and node.end_byte <= scope.end_byte:
            for match in re.finditer(role + rb"|" + call, unit.text_of(node)):
                group = 1 if match[1] else 2
                span = Span(node.start_byte + match.start(group), node.start_byte + match.end(group))
                if unit.holds(span):
                    yield span


def _fields(text: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    """Yield the positions of an escaped name in Sphinx style, such as `:param x:`."""
    for match in re.finditer(rb":(?:param|type)[ \t]+(?:[\w.]+[ \t]+)?(" + word + rb"):", text):
        yield match.span(1)


def _underlined(text: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    """Yield the positions of an escaped name in NumPy style, such as `x : int` under a heading."""
    for heading in _UNDERLINED.finditer(text):
        indent = heading[1]
        entry = rb"\n%s(?:\*{0,2}\w+,[ \t]*)*\*{0,2}(%s)(?=[ \t]*[,:\r\n])" % (indent, word)
        rest = text[heading.end() :]
        # The list ends at the next underlined heading with the same indentation.
        next_heading = re.search(rb"\n%s\w.*\r?\n%s---" % (indent, indent), rest)
        for match in re.finditer(entry, rest[: next_heading.start()] if next_heading else rest):
            yield heading.end() + match.start(1), heading.end() + match.end(1)


def _entries(text: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    """Yield the positions of an escaped name in Google style, such as `x:` under `Args:`."""
    entry = re.compile(rb"[ \t]*\*{0,2}(" + word + rb")(?:[ \t]*\([^()]*\))?:")
    # Widths of the indentation; -1 outside a list.
    at, heading, entries = 0, -1, -1
    for line in text.splitlines(keepends=True):
        width = len(line) - len(line.lstrip(b" \t"))
        if _HEADING.fullmatch(line.rstrip(b"\r\n")):
            heading, entries = width, -1
        elif line.strip() and width <= heading:
            # A line that is not indented below the heading ends the list.
            heading = -1
        elif line.strip() and heading >= 0:
            # The first line of a list has the indentation of all names; deeper lines are descriptions.
            entries = width if entries < 0 else entries
            if width == entries and (named := entry.match(line)):
                yield at + named.start(1), at + named.end(1)
        at += len(line)


class _Calls:
    """An index of the calls in the parsed code."""

    def __init__(self, unit: CodeUnit, scopes: Scopes) -> None:
        self._unit = unit
        self._scopes = scopes
        found = captures(unit, "(call) @call (attribute) @attribute")
        self._by_callee = {required(call, "function").start_byte: call for call in found.get("call", [])}
        self._attributes = found.get("attribute", [])

    def keywords(self, function: Node, parameter: str) -> Iterator[Node]:
        """Yield the identifier of each keyword argument for a parameter, as `x` in `f(x=1)`."""
        variable = self._scopes.at(required(function, "name"))
        for use in variable.uses if variable else []:
            call = self._call_of(use.node)
            yield from self._keywords(call, parameter) if call else []

    def why_open(self, function: Variable, parameter: str) -> str | None:
        """Return the reason why a use of a function forbids renaming a parameter; None if none does.

        In plain calls such as `f(x=1)`, the keyword can be renamed. A function that is passed on may be
        called from anywhere, and `f(**options)` may pass any parameter.
        """
        if sum(use.role == "function" for use in function.uses) != 1:
            return "the function is defined more than once"
        for use in function.uses:
            call = self._call_of(use.node)
            if use.role not in ("function", "read") or (use.role == "read" and call is None):
                return "the function is used without being called"
            if call and _unpacks(call):
                return "a call of the function unpacks keywords"
        # Only a single function, parsed alone, may be a method of an unknown class.
        is_own = self._unit.is_function and function.scope is self._scopes.module
        return self._why_open_method(function.name.encode(), parameter) if is_own else None

    def _why_open_method(self, name: bytes, parameter: str) -> str | None:
        """Return the reason why a use such as `x.run(y=1)` forbids renaming `y`; None if none does."""
        # The code may be a method of an unknown class, so `x.run` in its body may be a recursive use.
        # `x.run(y=1)` and `x.run(**options)` pass the parameter by name, and `f(y=1)` may follow `f = x.run`.
        for attribute in self._attributes:
            if self._unit.text_of(required(attribute, "attribute")) != name:
                continue
            # It means the method of another class.
            if self._unit.text_of(required(attribute, "object")) == b"super()":
                continue
            call = self._call_of(attribute)
            if call is None:
                return "an attribute of the same name is used without being called"
            if _unpacks(call) or any(self._keywords(call, parameter)):
                return "a call of an attribute of the same name passes the parameter by its name"
        return None

    def is_called_at_once(self, function: Node) -> bool:
        """Return whether a lambda is called directly, without keyword arguments, as in `(lambda x: x)(1)`."""
        parent = function.parent
        if parent is None or parent.type != "parenthesized_expression":
            return False
        call = self._by_callee.get(parent.start_byte)
        if call is None or required(call, "function") != parent:
            return False
        passed = required(call, "arguments").children
        return not any(node.type in ("keyword_argument", "dictionary_splat") for node in passed)

    def _call_of(self, callee: Node) -> Node | None:
        """Return the call `f(x)` of the identifier or attribute `f`; None if `f` is not called."""
        call = self._by_callee.get(callee.start_byte)
        return call if call and required(call, "function") == callee else None

    def _keywords(self, call: Node, parameter: str) -> Iterator[Node]:
        """Yield the identifier of a call's keyword argument for a parameter, if there is one."""
        for node in required(call, "arguments").children:
            if (
                node.type == "keyword_argument"
                and self._unit.text_of(required(node, "name")) == parameter.encode()
            ):
                yield required(node, "name")


def _unpacks(call: Node) -> bool:
    """Return whether a call unpacks a mapping into keyword arguments, as in `f(**options)`."""
    return any(node.type == "dictionary_splat" for node in required(call, "arguments").children)


# Conventions, on which tools rely: a value that is not used, and the first parameter of a method.
_FIXED = frozenset({"_", "self", "cls"})
_ELSEWHERE = "another file may use the function"
_WORD = re.compile(r"[^\W\d]\w*")


def symbols(unit: CodeUnit) -> Iterator[Symbol | SkippedSite]:
    """Yield each function, parameter and local variable, as a symbol or a skipped site.

    Methods of a class and the variables of a class are left out.
    """
    renaming = _Renaming(unit)
    scopes = renaming.scopes
    guesses = ValueGuesses(unit, scopes)
    for variable in sorted(scopes.variables, key=lambda variable: variable.uses[0].node.start_byte):
        roles = {use.role for use in variable.uses} & BINDING
        if not roles or variable.scope.node.type == "class_definition":
            continue
        kind = "parameter" if roles & {"parameter", "rest"} else "variable"
        if "function" in roles:
            kind = "function"
        # Other files may use the variables of a module.
        if variable.scope is scopes.module and kind != "function":
            continue
        node = next(use.node for use in variable.uses if use.role in BINDING)
        reason = renaming.skip_reason(variable, kind)
        if reason:
            yield SkippedSite(node, reason, kind)
            continue
        uses = {span_of(use.node) for use in variable.uses}
        uses.update(renaming.mentions(variable, kind))
        yield Symbol(kind, variable.name, node, tuple(sorted(uses)), guesses.kind(variable))


class _Renaming:
    """Checker that decides whether a function, parameter or variable can be renamed safely."""

    def __init__(self, unit: CodeUnit) -> None:
        self._unit = unit
        self.scopes = Scopes(unit)
        self._calls = _Calls(unit, self.scopes)
        found = captures(
            unit,
            '(comment) @comment (string) @string (interpolation "=") @shown (type) @type',
        )
        self._shown = [(node.start_byte, node.end_byte) for node in found.get("shown", [])]
        # Quoted annotations and type comments may name what is renamed, and tools evaluate them.
        types = [unit.text_of(node).decode() for node in found.get("type", [])]
        comments = [unit.text_of(node).decode() for node in found.get("comment", [])]
        texts = [text for text in types if '"' in text or "'" in text]
        texts += [text for text in comments if re.match(r"#[ \t]*type:", text)]
        self._typed = {word for text in texts for word in _WORD.findall(text)}
        self._strings = [unit.text_of(node) for node in found.get("string", [])]
        # pandas reads local variables in `frame.query("x > @limit")`.
        self._queried = {word for text in self._strings for word in re.findall(r"@(\w+)", text.decode())}
        self._attributes = {unit.text_of(node) for node in self.scopes.attributes}
        self._reads_function_names = any(_reads_function_name(unit, node) for node in self.scopes.attributes)
        self._reads_function_names |= self._is_quoted(b"__name__") or self._is_quoted(b"__qualname__")

    def skip_reason(self, variable: Variable, kind: str) -> str | None:
        """Return the reason why a symbol cannot be renamed; None if it can be."""
        unit, name = self._unit, variable.name
        roles = {use.role for use in variable.uses} & BINDING
        if name in _FIXED or name.startswith("__"):
            return "the name has a meaning of its own"
        if not self.scopes.is_known(variable) or any(
            # Python treats two spellings with the same NFKC form as one name.
            unit.text_of(use.node).decode() != name
            for use in variable.uses
        ):
            return "not all uses of the name are surely found"
        if roles & {"import", "class"} or (kind == "function" and roles != {"function"}):
            return "the name is also bound by an import, a class or another statement"
        if variable.scope.reflects:
            return "code may read names at run time"
        if any(start < use.node.start_byte < end for use in variable.uses for start, end in self._shown):
            return "an f-string shows the name"
        if name in self._typed:
            return "a type in a string or comment may hold the name"
        if name in self._queried:
            return "a string may read the name, as queries of tables do"
        if kind == "function":
            return self._function_skip_reason(variable)
        return self._parameter_skip_reason(variable) if kind == "parameter" else None

    def mentions(self, variable: Variable, kind: str) -> Iterator[Span]:
        """Yield the keyword arguments and the mentions in documentation that a renamed symbol must change."""
        function = variable.scope.node
        # Code that reads docstrings might print or parse them.
        is_read = b"__doc__" in self._attributes
        if kind == "function" and not is_read:
            yield from _function_mentions(self._unit, function, variable.name)
        if kind != "parameter" or function.type != "function_definition":
            return
        for node in self._calls.keywords(function, variable.name):
            yield span_of(node)
        if not is_read:
            yield from _parameter_mentions(self._unit, function, variable.name)

    def _function_skip_reason(self, variable: Variable) -> str | None:
        unit, name = self._unit, variable.name.encode()
        definitions = [use.node.parent for use in variable.uses if use.role == "function"]
        if self._reads_function_names:
            return "code may read the names of functions"
        if any(node is None or is_opaque(unit, self.scopes, node) for node in definitions):
            return "a decorator may read the name"
        if variable.scope is not self.scopes.module:
            return "a string holds the name" if self._is_quoted(name) else None
        if not unit.is_function or any(use.role == "declare" for use in variable.uses):
            return _ELSEWHERE
        # An indented function, or one with `self`, was cut out of a class.
        method = is_indented(unit.text[unit.source.start :]) or _first_parameter(unit, definitions[0]) in (
            "self",
            "cls",
        )
        if method and name in self._attributes:
            return "the function may be a method that is read as an attribute"
        if definitions[0] and variable.name in _WORD.findall(self._example(definitions[0])):
            return "an example in the docstring calls the function"
        return "a string holds the name" if self._is_quoted(name) else None

    def _parameter_skip_reason(self, variable: Variable) -> str | None:
        scope = variable.scope
        declarations = [use for use in variable.uses if use.role in ("parameter", "rest")]
        # No call can pass `*args` or `**options` by its name.
        if all(use.role == "rest" for use in declarations):
            return None
        if scope.node.type == "lambda":
            called = self._calls.is_called_at_once(scope.node)
            return None if called else "the parameter may be passed by its name"
        function = self.scopes.at(required(scope.node, "name"))
        if function is None or not self.scopes.is_known(function):
            return "the parameter may be passed by its name"
        is_own = function.scope is self.scopes.module
        is_positional = _is_positional(scope.node, declarations[0].node)
        is_seen = not self._unit.is_function and function.scope.node.type in ("module", "class_definition")
        if is_positional and is_seen:
            # Python names a missing positional-only argument in its error message.
            return "an error message may name the parameter"
        if (is_own and not self._unit.is_function) or function.scope.node.type == "class_definition":
            return "the parameter may be passed by its name"
        if is_own and self._unit.is_function and _is_keyword_only(scope.node, declarations[0].node):
            return "callers pass the parameter by its name"
        if is_opaque(self._unit, self.scopes, scope.node):
            return "a decorator may read the name"
        text = self._example(scope.node)
        if is_own and re.search(rf"\b{variable.name}\s*=", text):
            return "an example in the docstring passes the parameter by its name"
        return self._calls.why_open(function, variable.name)

    def _example(self, function: Node) -> str:
        """Return the docstring of a function if it has an example with `>>>`; otherwise an empty text."""
        node = docstring(function)
        text = self._unit.text_of(node).decode() if node else ""
        # Code in an example with `>>>` may call the function and name its parameters, and doctest runs it.
        return text if ">>>" in text else ""

    def _is_quoted(self, name: bytes) -> bool:
        """Return whether a string in the code equals a name, as in `getattr(x, "name")`."""
        return any(
            text.strip(b"rRbBuUfF\"'") == name.strip(b"rRbBuUfF") for text in self._strings if name in text
        )


def _reads_function_name(unit: CodeUnit, attribute: Node) -> bool:
    """Return whether an attribute such as `f.__name__` may give the name of a function."""
    if unit.text_of(attribute) not in (b"__name__", b"__qualname__") or attribute.parent is None:
        return False
    owner = attribute.parent.child_by_field_name("object")
    # `type(x).__name__` and `x.__class__.__name__` give the name of a class.
    if owner and owner.type == "call":
        return unit.text_of(required(owner, "function")) != b"type"
    return not (owner and unit.text_of(owner).endswith(b"__class__"))


def _first_parameter(unit: CodeUnit, function: Node | None) -> str:
    """Return the name of the first parameter of a function; empty if there is no parameter."""
    parameters = required(function, "parameters").named_children if function else []
    match = _WORD.match(unit.text_of(parameters[0]).decode()) if parameters else None
    return match[0] if match else ""


def _is_positional(function: Node, parameter: Node) -> bool:
    """Return whether a parameter is positional-only, as in `def f(x, /)`."""
    parameters = function.child_by_field_name("parameters")
    separators = (
        [node for node in parameters.children if node.type == "positional_separator"] if parameters else []
    )
    return any(parameter.start_byte < node.start_byte for node in separators)


def _is_keyword_only(function: Node, parameter: Node) -> bool:
    """Return whether a parameter is keyword-only: it stands after `*` or `*args`, as in `def f(*, x)`."""
    stars = [
        node
        for node in required(function, "parameters").children
        if node.type in ("keyword_separator", "list_splat_pattern")
        or (node.type == "typed_parameter" and node.children[0].type == "list_splat_pattern")
    ]
    return any(node.start_byte < parameter.start_byte for node in stars)
