"""New names from words with similar embeddings (by cosine)."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from tree_sitter import Node

from simllm.code.languages.language import find_language
from simllm.errors import InputError
from simllm.io.reading import read_lines
from simllm.perturb.code.edits import Span
from simllm.perturb.code.java.parsing import field_child, find_nodes, required
from simllm.perturb.code.python import parsing
from simllm.perturb.code.python.roles import BINDING, identifier_roles
from simllm.perturb.code.python.scopes import Scopes, Variable
from simllm.perturb.code.rules import LANGUAGES, find_rules
from simllm.perturb.summaries import lexicon

_MOST = 5  # replacements for each word


def nearest_names(embed: Callable[[Sequence[str]], np.ndarray]) -> Namer:
    """Make a namer that replaces one word, or all words, of a name by words with similar embeddings.

    The replacements come from simllm's lists of synonyms. `embed` returns the (n, D) embeddings of n words,
    as `SimLLM.embed` does.
    """
    words = known_words()
    embeddings = _normalized(embed(words))

    def nearest(word: str) -> list[str]:
        """Return up to 5 known words with the largest cosine, without other forms of the word itself."""
        order = np.argsort(-(embeddings @ _normalized(embed([word]))[0]), kind="stable")
        # Many of the nearest words are forms of the word, so more candidates are taken than are returned.
        others = (words[int(number)] for number in order[: 4 * _MOST])
        return [other for other in others if not _is_form(other, word)][:_MOST]

    def propose(name: str, kind: str) -> Iterator[str]:
        return replaced_words(name, [nearest(word.lower()) for word in split_words(name)])

    return propose


def _normalized(embeddings: np.ndarray) -> np.ndarray:
    """Scale (n, D) embeddings to length 1."""
    return embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True).clip(1e-12)


def _is_form(other: str, word: str) -> bool:
    """Guess from the first letters whether two words are forms of one word, such as "item" and "items"."""
    # No stemmer: a wrongly rejected word costs only one proposal of several.
    short, long = sorted((other, word), key=len)
    return long.startswith(short[: max(4, len(short) - 1)])


Namer = Callable[[str, str], Iterable[str]]  # takes a name and its kind; returns proposals, best first
_UPPER, _LOWER = "A-ZÀ-ÖØ-Þ", "a-zß-öø-ÿ"
_WORDS = re.compile(rf"[{_UPPER}]+(?![{_LOWER}])|[{_UPPER}]?[{_LOWER}]+|\d+|[^\W\d_{_UPPER}{_LOWER}]+")
_SHOWN = 3  # refused proposals that a reason names
_LETTERS = {"function": "f", "parameter": "p", "variable": "v"}
_FILE = Path(__file__).parent / "data" / "identifier_synonyms.txt"


def namer_of(names: str | Mapping[str, str] | Namer) -> Namer:
    """Return the namer for a user's choice.

    The choice is "lexicon" (synonyms of the words of a name), "plain" (meaningless names such as `v0`), a
    mapping from old to new names, or a namer. Any other text raises `InputError`.
    """
    if isinstance(names, Mapping):
        return lambda name, kind: filter(None, [names.get(name)])
    if not isinstance(names, str):
        return names
    if names == "lexicon":
        return synonyms
    if names == "plain":
        return plain
    raise InputError(f"unknown names {names!r}; expected lexicon, plain, or a file of names")


def choose_name(
    name: str, kind: str, namer: Namer, why_taken: Callable[[str], str | None]
) -> tuple[str | None, str]:
    """Return the first usable proposal and ""; or None and the reason why there is none.

    `why_taken` tells why a proposal cannot be used; None if it can be.
    """
    reasons = []
    for new in namer(name, kind):
        reason = why_taken(new) if _is_name(new) else "cannot be a name in both languages"
        if reason is None:
            return new, ""
        reasons.append(f"{new[:40]!r} {reason}")
    more = f", and {len(reasons) - _SHOWN} more are taken" if len(reasons) > _SHOWN else ""
    return None, ": ".join(
        [f"there is no new name for {name}", *(["; ".join(reasons[:_SHOWN]) + more] if reasons else [])]
    )


def words_of(text: str) -> set[str]:
    """Return the words of a text, unchanged and in Unicode normal form NFKC.

    A new name must differ from all these words.
    """
    # Python treats two identifiers with the same NFKC form as equal.
    return set(re.findall(r"[\w$]+", f"{text} {unicodedata.normalize('NFKC', text)}"))


def read_names(file: Path) -> dict[str, str]:
    """Read new names from a file with lines `OLD<tab>NEW`; blank lines are skipped.

    A line of another form, a repeated name, or a new name that no language can use raises `InputError`.
    """
    # One file of names serves both languages: a word that only one of them reserves is refused later, for
    # each source.
    reserved = frozenset[str].intersection(*(find_rules(language).reserved for language in LANGUAGES))
    names: dict[str, str] = {}
    places: dict[str, int] = {}
    for number, line in read_lines(file):
        fields = line.split("\t")
        if not line.strip():
            continue
        if len(fields) != 2 or not all(field.isidentifier() for field in fields):
            raise InputError(f"{file}:{number}: expected an old and a new name, separated by a tab")
        if fields[0] in names:
            raise InputError(f"{file}:{number}: {fields[0]} has a new name already")
        if fields[1] in places:
            raise InputError(
                f"{file}:{number}: {fields[1]} is the new name of line {places[fields[1]]} already"
            )
        if fields[1] in reserved or not _is_name(fields[1]) or fields[0] == fields[1]:
            raise InputError(f"{file}:{number}: {fields[1]} cannot be a new name for {fields[0]}")
        names[fields[0]] = fields[1]
        places[fields[1]] = number
    return names


def plain(name: str, kind: str) -> Iterator[str]:
    """Propose an endless sequence of meaningless names, such as `v0`, `v1`, `v2` and so on.

    Args:
        name: The old name, which is ignored.
        kind: The kind of symbol. The names begin with `v` for a "variable", with `p` for a "parameter", and
            with `f` for a "function".
    """
    return (f"{_LETTERS[kind]}{number}" for number in itertools.count())


def synonyms(name: str, kind: str) -> Iterator[str]:
    """Propose names with synonyms: `maximumWidth` for `maxWidth`, or `fetch_all` for `read_all`."""
    table = _synonyms()
    return replaced_words(name, [table.get(word.lower(), ()) for word in split_words(name)])


def replaced_words(name: str, choices: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield new names with replaced words; `choices` has the replacements of each word, best first.

    The best replacements come first: one word at a time, and then all words at once. `maxWidth` gives
    `maximumWidth`, `maxBreadth` and `maximumBreadth`. The second-best replacements follow in the same way.
    """
    for number in range(max(map(len, choices), default=0)):
        new = {at: options[number] for at, options in enumerate(choices) if number < len(options)}
        for at, word in new.items():
            yield joined(name, {at: word})
        if len(new) > 1:
            yield joined(name, new)


def known_words() -> list[str]:
    """Return all words in the lists of synonyms, in alphabetical order."""
    table = _synonyms()
    return sorted({*table, *(word for words in table.values() for word in words)})


def split_words(name: str) -> list[str]:
    """Split an identifier at case, digits and underscores: `maxWidth2` gives `max`, `Width` and `2`."""
    return _WORDS.findall(name)


def joined(name: str, new: Mapping[int, str]) -> str:
    """Replace words of a name: `maxWidth` with `{0: "maximum"}` becomes `maximumWidth`.

    The keys are indices in `split_words(name)`, and the new words are in lower case. Upper case and
    underscores stay as in the old name.
    """
    numbers = itertools.count()

    def replaced(match: re.Match[str]) -> str:
        word = new.get(next(numbers), "")
        if not word:
            return match[0]
        if match[0].isupper() and len(match[0]) > 1:
            return word.upper()
        return word.capitalize() if match[0][0].isupper() else word

    return _WORDS.sub(replaced, name)


def _is_name(text: str) -> bool:
    """Return whether a name can be used unchanged as an identifier in Java and in Python."""
    # Python changes other names: it normalizes identifiers to NFKC, and adds the name of the class around to
    # names that begin with `__`.
    is_plain = unicodedata.normalize("NFKC", text) == text and not text.startswith("__")
    return is_plain and text.isidentifier()


@cache
def _synonyms() -> dict[str, tuple[str, ...]]:
    """Return the synonyms of each word, best first."""
    table: dict[str, dict[str, None]] = {}
    for _, line in read_lines(_FILE):
        word, _, others = line.partition(":")
        if others and not line.startswith("#"):
            # This list was made for names in code, so its synonyms come before those of the lexicon, which
            # was made for summaries.
            table.setdefault(word.strip(), {}).update(dict.fromkeys(map(str.strip, others.split(","))))
    for word, replacements in lexicon.load().synonyms.items():
        usable = (r.word for r in replacements if r.part_of_speech in ("noun", "verb", "adjective"))
        table.setdefault(word, {}).update(dict.fromkeys(w for w in usable if w.isalpha()))
    return {word: tuple(others) for word, others in table.items()}


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
    called = {new: old[new] for new in _functions(variant, language) if new in old}
    if not old or not any(name in text for name in old):
        return text
    restored = {"java": _restored_java, "python": _restored_python}[language]
    return "".join(_restored_part(part, is_fenced, restored, called, old) for part, is_fenced in _parts(text))


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
