"""Kinds of values, and the words of names that fit them: `text` is no name for a number.

The kinds are "number", "text" (also single characters), "truth", "list" (any collection), "map" and "object"
(an instance of any other class). The kind is empty if it is unknown.
"""

from __future__ import annotations

import re

# Words that tell the kind of a value. All other words, such as `value` or `result`, fit any kind.
_WORDS = {
    "number": "amount breadth count counter delta depth difference digit distance divisor extent figure "
    "height index inner length limit middle multiple multiplier number offset quantity rate ratio shift size "
    "stop stride sum tally threshold total width",
    "text": "character label letter message note phrase sentence string text title word",
    "truth": "condition flag switch",
    "list": "array characters chars elements entries facts group heap items journal letters list marks "
    "matrix members numbers points pile queue records sequence signs stack steps strides symbols terms "
    "values words",
    "map": "map mapping table",
    "object": "graph handle node user",
    # An ordinal, a place or a time is a number, or an object with a class of its own.
    "number object": "column instant moment place position rank row score time unit vertex",
    "text object": "file name query route term token",
    "text map": "dictionary",
    "list object": "others",
    "function": "callback function",
}
_KINDS: dict[str, frozenset[str]] = {}
for _kinds, _words in _WORDS.items():
    for _word in _words.split():
        _KINDS[_word] = frozenset(_kinds.split())
# Names for values of a kind, best first, where a name has no synonyms that fit.
_COMMON = {
    "number": ("number", "amount", "quantity"),
    "text": ("text", "string", "word"),
    "truth": ("flag", "condition", "switch"),
    "list": ("values", "items", "elements"),
    "map": ("mapping", "table", "entries"),
    "object": ("item", "instance", "subject"),
    "": ("item", "value", "object"),
}
_NUMBERS = frozenset(
    "byte short int long float double Byte Short Integer Long Float Double Number BigInteger BigDecimal "
    "AtomicInteger AtomicLong complex Decimal Fraction".split()
)
_TEXTS = frozenset(
    "char Character String CharSequence StringBuilder StringBuffer str bytes bytearray".split()
)
_TRUTHS = frozenset("boolean Boolean bool AtomicBoolean".split())
_LISTS = re.compile(
    r"[A-Za-z]*(?:List|Set|Collection|Queue|Deque|Stack|Vector|Iterable|Iterator|Stream|Sequence|Generator)"
    r"|list|set|frozenset|tuple|Tuple|deque"
)
_MAPS = re.compile(r"[A-Za-z]*(?:Map|Mapping)|dict|Dict|defaultdict|DefaultDict|OrderedDict|Counter")


def kind_of_type(written: str) -> str:
    """Return the kind of the values of a type, as Java or Python code writes it; empty if there is none."""
    name = written.strip()
    if name.endswith("[]"):
        return "list"
    name = re.split(r"[<\[]", name, maxsplit=1)[0].rpartition(".")[2].strip()
    for kind, names in (("number", _NUMBERS), ("text", _TEXTS), ("truth", _TRUTHS)):
        if name in names:
            return kind
    if _MAPS.fullmatch(name):
        return "map"
    if _LISTS.fullmatch(name):
        return "list"
    # A type variable such as `T`, and types that stand for any value, tell nothing.
    is_class = len(name) > 1 and name.isidentifier() and name not in ("var", "Object", "Any", "object")
    return "object" if is_class else ""


def fits(new: str, old: str, kind: str) -> bool:
    """Return whether a new word, in place of an old one, can name values of a kind."""
    told = _KINDS.get(new, frozenset[str]())
    # A wrong old word is none of our business: `count` of a text may become `tally`.
    return not told or not kind or kind in told or bool(told & _KINDS.get(old, frozenset[str]()))


def is_open(word: str) -> bool:
    """Return whether a word fits any kind of values."""
    return word not in _KINDS


def common_names(kind: str) -> tuple[str, ...]:
    """Return names that fit any values of a kind, best first."""
    return _COMMON[kind]
