"""Contents of a documentation comment: its tags and sections, and the names and values in its sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from simllm.text_cleaning import sentence_ends

_MARKS = re.compile(
    r"\A[ \t]*(?:/\*+!?|\*(?!\*?/)|//+[!/]?|#+(?!\{)|[rRuU]?(?:\"\"\"|'''))[ \t]?|[ \t]*\*+/[ \t]*\Z"
)
_PYTHON_MARKS = re.compile(r"\A[rRuU]?(?:\"\"\"|'''|[\"'])|(?:\"\"\"|'''|[\"'])\Z")
_TAG = re.compile(r"[ \t]*(?:[@\\]|:(?=[a-z]+[^:`]*:(?!`)))(?P<tag>[A-Za-z]+)(?:\[[^\]]*\])?(?P<rest>.*)")
_PARAMETER_TAGS = ("param", "parameter", "arg", "argument", "keyword", "key", "kwarg")
_RETURN_TAGS = ("return", "returns")
_RAISE_TAGS = ("throws", "throw", "exception", "raise", "raises", "except")
_SECTIONS = {
    "args": "parameter",
    "arguments": "parameter",
    "parameters": "parameter",
    "params": "parameter",
    "other parameters": "parameter",
    "keyword args": "key",
    "keyword arguments": "key",
    "returns": "return",
    "return": "return",
    "raises": "raise",
    "throws": "raise",
}
# Headings without their line below look like names.
_OTHER_TITLE = re.compile(
    r"(?:Note|Warning|Example|Reference|Return|Raise|Yield|See|Usage|Parameter|Attribute|Todo)s?"
)
_HEADING = re.compile(r"(?P<indent>[ \t]*)(?P<title>[A-Z][A-Za-z ]+?)[ \t]*:?[ \t]*\Z")
_UNDERLINE = re.compile(r"[ \t]*-{3,}[ \t]*\Z")
_GOOGLE_ITEM = re.compile(r"(?P<names>\\?\*{0,2}\w[\w.]*)[ \t]*(?:\([^)]*\))?[ \t]*:(?![:/])(?:[ \t]|\Z)")
_NUMPY_ITEM = re.compile(r"(?P<names>\\?\*{0,2}\w+(?:[ \t]*,[ \t]*\\?\*{0,2}\w+)*)[ \t]*(?::(?![:/])|\Z)")
_NOTHING = re.compile(
    r"(?i)[\W_]*(?:(?:@?link )?void|none|nothing|undefined|null|never|nil|promise<void>|n/a)\b"
)


@dataclass(frozen=True)
class Claim:
    """A part of a comment that names something.

    Attributes:
        kind: `parameter`, `return`, `raise`, `key` for an argument that may stand in a dictionary, or the
            kind of a mention: `name`, `number` or `text`; prose may also mention what it raises.
        value: What is named, such as the name of the parameter.
        sentence: The sentence or the text of the tag that names it, on one line.
        line: The line of the comment, from 0.
    """

    kind: str
    value: str
    sentence: str
    line: int


@dataclass(frozen=True)
class Documentation:
    """The claims of a comment, and its plain lines."""

    lines: tuple[str, ...]
    claims: tuple[Claim, ...] = field(default=())

    def of_kind(self, kind: str) -> list[Claim]:
        """Return the claims of a kind, in the order of the comment."""
        return [claim for claim in self.claims if claim.kind == kind]

    def has_word(self, word: str) -> bool:
        """Return whether a word occurs anywhere in the comment."""
        return bool(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", "\n".join(self.lines)))


def read_documentation(comment: str, language: str) -> Documentation:
    """Read a comment that still has its marks, such as `/**` or quotes."""
    if language == "python":
        lines = _PYTHON_MARKS.sub("", comment.strip()).split("\n")
    else:
        lines = [_MARKS.sub("", _MARKS.sub("", line)) for line in comment.split("\n")]
    claims = [*_tags(lines, language), *(_sections(lines) if language == "python" else ()), *_mentions(lines)]
    return Documentation(tuple(lines), tuple(claims))


def _tags(lines: list[str], language: str) -> Iterator[Claim]:
    """Yield the claims of tags such as `@param name` and `:param name:`."""
    for number, line in enumerate(lines):
        if not (found := _TAG.fullmatch(line)):
            continue
        tag, rest = found["tag"].lower(), found["rest"]
        if line.lstrip().startswith(":") or (language == "python" and ":" in rest):
            # In Sphinx, the type may stand before the name; in epydoc, there is no type.
            head, _, described = rest.partition(":")
            names = head.split()[-1:] if head.strip() else []
        else:
            names, described = [_named(rest, language)], rest
        sentence = _tag_text(lines, number)
        if tag in _PARAMETER_TAGS:
            kind = "key" if tag in ("keyword", "key", "kwarg") else "parameter"
            for name in names:
                if re.fullmatch(r"\w+", plain := name.strip("*&$`\\")):
                    yield Claim(kind, plain, sentence, number)
                elif language == "java" and (generic := re.fullmatch(r"<(\w+)>", name)):
                    yield Claim("parameter", generic[1], sentence, number)
        elif tag in _RETURN_TAGS and not _NOTHING.match(described) and described.strip():
            yield Claim("return", "", sentence, number)
        elif tag in _RAISE_TAGS and (words := re.findall(r"[\w.\\]+", rest)):
            name = re.split(r"[.\\]", words[0])[-1]
            if re.match(r"[A-Z]\w+\Z", name):
                yield Claim("raise", name, sentence, number)


def _named(rest: str, language: str) -> str:
    """Return the name after a tag such as `@param`; "" if it cannot be told from the type or the text."""
    rest = _without_type(rest.strip())
    if language == "php":
        found = re.search(r"\$(\w+)", rest.partition(" - ")[0][:200])
        return found[1] if found else ""
    # JavaScript: [name=default], options.name
    name = re.match(r"\[?\s*(<?(?:\.\.\.)?[\w$]+>?)(?P<more>[\w.\[\]]*)", rest)
    if not name or (language in ("javascript", "typescript") and name["more"].startswith((".", "["))):
        return ""
    return name[1].removeprefix("...")


def _without_type(rest: str) -> str:
    """Remove a type at the beginning, as in `{Array<{a: 1}>} name` or `[Integer] name`."""
    pairs = {"{": "}", "[": "]"}
    # In JavaScript, `[name]` is an optional parameter; in Ruby, `[Type] name` has a name after it.
    if rest[:1] == "[" and not re.match(r"\[[^\]]*\][ \t]+[a-z_]\w*", rest):
        return rest
    if rest[:1] == "[" and re.match(r"\[[a-z]\w*\s*(?:=[^\]]*)?\]", rest):
        return rest
    if (closing := pairs.get(rest[:1])) is None:
        return rest
    depth = 0
    for at, character in enumerate(rest):
        depth += (character == rest[0]) - (character == closing)
        if depth == 0:
            return rest[at + 1 :].strip()
    return ""


def _tag_text(lines: list[str], start: int) -> str:
    """Return the text of a tag, up to the next tag or empty line, on one line."""
    end = start + 1
    while end < len(lines) and lines[end].strip() and not _TAG.fullmatch(lines[end]):
        end += 1
    return " ".join(" ".join(lines[start:end]).split())


def _sections(lines: list[str]) -> Iterator[Claim]:
    """Yield the claims of sections such as `Args:`, in the style of Google or of numpy."""
    number = 0
    while number < len(lines):
        heading = _HEADING.fullmatch(lines[number])
        kind = _SECTIONS.get(heading["title"].lower()) if heading else None
        is_numpy = number + 1 < len(lines) and bool(_UNDERLINE.match(lines[number + 1]))
        is_google = lines[number].rstrip().endswith(":")
        number += 1
        if not heading or not kind or not (is_numpy or is_google):
            continue
        number += is_numpy
        first = number
        while number < len(lines) and not _ends_section(lines, number, len(heading["indent"]), is_numpy):
            number += 1
        yield from _items(lines, first, number, kind, _NUMPY_ITEM if is_numpy else _GOOGLE_ITEM)


def _ends_section(lines: list[str], number: int, indent: int, is_numpy: bool) -> bool:
    line = lines[number]
    if not line.strip():
        return False
    if is_numpy:
        is_heading = number + 1 < len(lines) and bool(_UNDERLINE.match(lines[number + 1]))
        return is_heading or _indent(line) < indent
    return _indent(line) <= indent


def _items(lines: list[str], first: int, end: int, kind: str, item: re.Pattern[str]) -> Iterator[Claim]:
    """Yield a claim for each name in a section, whose items are less indented than their texts."""
    filled = [number for number in range(first, end) if lines[number].strip()]
    if kind == "return":
        if filled and not _NOTHING.match(lines[filled[0]]):
            yield Claim("return", "", " ".join(lines[filled[0]].split()), filled[0])
        return
    if not filled:
        return
    indent = min(_indent(lines[number]) for number in filled)
    starts = [number for number in filled if _indent(lines[number]) == indent]
    for number, following in zip(starts, [*starts[1:], end], strict=True):
        if found := item.match(lines[number].strip()):
            sentence = " ".join(" ".join(lines[number:following]).split())
            for name in re.findall(r"[\w.]+", found["names"]):
                plain = name.rpartition(".")[2] if kind == "raise" else name
                shape = r"[A-Z]\w+" if kind == "raise" else r"[^\W\d]\w*"
                if re.fullmatch(shape, plain) and not _OTHER_TITLE.fullmatch(plain):
                    yield Claim(kind, plain, sentence, number)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


# What stands in marks of code, or looks like code: camelCase, snake_case, a call.
_MARKED = re.compile(
    r"\{@(?:code|link|linkplain|value)\s+(?P<braced>[^{}]+)\}|:\w+:`[~!.]?(?P<role>[\w.]+)`|(?P<ticks>`+)(?P<ticked>[^`\n]+)(?P=ticks)"
    r"|<(?:code|tt)>(?P<html>[^<>\n]+)</(?:code|tt)>|(?<!\w)\+(?P<plus>[\w.?!]+)\+(?!\w)"
)
_CODE_WORD = re.compile(
    r"(?<![\w./@\\$-])(?:[a-z]+\d*(?:[A-Z][a-z0-9]*)+|_*[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?![\w/-])"
)
_NUMBER = re.compile(r"(?<![\w.,:/#+-])-?\d+(?:\.\d+)?(?![\w:/]|[.,-]\d|-\w)")
_TEXT = re.compile(r"(?<!\w)(?P<quote>\"|')(?P<text>[\w./:-]{2,40})(?P=quote)(?!\w)")
_EXCEPTION = r"(?:an?\s+)?(?:\{@\w+\s+|:\w+:)?`*[~!.\\]*(?:\w+[.\\])*[A-Z]\w+[`}]*"
_RAISES = re.compile(
    rf"(?i:\b(?:rais|throw)(?:es?|s|ing)?)\s+(?P<raised>{_EXCEPTION}(?:(?:,|,?\s+or|,?\s+and)\s+{_EXCEPTION})*)"
    # Only at the start of a name: with a start at each letter, long words would take minutes.
    rf"|(?<![\w`~!.\\])(?P<passive>{_EXCEPTION})\s+(?:(?:exception|error)\s+)?(?:is|will\s+be)\s+(?:raised|thrown)\b"
)
# "does not raise", "instead of raising"; a condition with "not" ends at a comma.
_DENIED = re.compile(
    r"(?i)\b(?:not?|never|cannot|without|instead|rather|avoids?|prevents?|\w+n['\u2019]t)\b[^.,;:()]*\Z"
)
_EXAMPLE = re.compile(
    r"[ \t]*(?:>>>|\.\.\.|```|\$ |Examples?\b|[eE]\.g\.)|.*(?:<pre>|::[ \t]*\Z)"
    r"|[ \t]*@(?:example|see|since|author|version|deprecated|todo|link|uses|covers|internal|template|psalm)"
)


def _mentions(lines: list[str]) -> Iterator[Claim]:
    """Yield the names, numbers, texts and raised exceptions in prose and tags, but not in examples."""
    text, starts = "", list[int]()
    for line in _without_examples(lines):
        starts.append(len(text))
        text += line + "\n"
    seen = set[tuple[str, str]]()
    for kind, value, at in sorted(_values(text), key=lambda each: each[2]):
        if (kind, value) not in seen:
            seen.add((kind, value))
            number = max(index for index, start in enumerate(starts) if start <= at)
            yield Claim(kind, value, _sentence(lines, number, at - starts[number]), number)


def _without_examples(lines: list[str]) -> Iterator[str]:
    """Yield the lines; those of examples, up to the next tag or less indented line, are empty."""
    hidden: int | None = None
    for line in lines:
        if hidden is not None and line.strip() and (_indent(line) <= hidden and not _EXAMPLE.match(line)):
            hidden = (
                None
                if _TAG.fullmatch(line) or _HEADING.fullmatch(line) or not line.startswith(" ")
                else hidden
            )
        if _EXAMPLE.match(line) and hidden is None:
            hidden = _indent(line)
        yield "" if hidden is not None else line


def _values(text: str) -> Iterator[tuple[str, str, int]]:
    for found in _MARKED.finditer(text):
        inside = next(filter(None, (found[name] for name in ("braced", "role", "ticked", "html", "plus"))))
        words = re.fullmatch(
            r"(?:[\w.:\\]*[.#:\\])?(?P<name>[^\W\d]\w*)(?:\([^()]*\))?(?:\s.*)?", inside.strip()
        )
        if words:
            yield "name", words["name"], found.start()
    for found in _CODE_WORD.finditer(text):
        yield "name", found[0], found.start()
    for found in _NUMBER.finditer(text):
        if found[0] not in ("0", "1", "2"):
            yield "number", found[0], found.start()
    for found in _TEXT.finditer(text):
        yield "text", found["text"], found.start()
    for found in _RAISES.finditer(text):
        if not _DENIED.search(text[max(0, found.start() - 100) : found.start()]):
            for name in re.findall(r"[A-Z]\w+(?![\w.\\])", found["raised"] or found["passive"]):
                yield "raise", name, found.start()


def _sentence(lines: list[str], number: int, column: int) -> str:
    """Return the sentence at a place of a comment, on one line."""
    first, last = number, number + 1
    while first > 0 and lines[first - 1].strip() and not _TAG.fullmatch(lines[first]):
        first -= 1
    while last < len(lines) and lines[last].strip() and not _TAG.fullmatch(lines[last]):
        last += 1
    before = " ".join(" ".join([*lines[first:number], lines[number][:column]]).split())
    whole = " ".join(" ".join(lines[first:last]).split())
    start = 0
    for end in (*sentence_ends(whole), len(whole)):
        if end > len(before):
            return whole[start:end].strip()
        start = end
    return whole[start:].strip()
