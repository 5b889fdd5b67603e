"""Answers of a model, read for a label such as "yes", and the probabilities of the labels."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from simllm.errors import OptionError
from simllm.llm.reply import Place

_MOST_UNRESOLVED = 0.01  # of the mass of all labels; with more, there are no probabilities
_THINKING = re.compile(
    r"<(think|thinking|thought|reasoning|reflection|scratchpad)>.*?(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL
)
# Some servers cut the opening mark off, so that only the end of the thoughts can be seen.
_END_OF_THINKING = re.compile(
    r"\A.*</(?:think|thinking|thought|reasoning)>|\A.*<\|channel\|>final<\|message\|>",
    re.IGNORECASE | re.DOTALL,
)
_SIGN = re.compile(r"[^\w\n]")
_SENTENCE_END = re.compile(r"[.!?:;]\s")
_BLANK = r"[^\S\n]"
_QUOTES = "*_`\"'\u2018\u2019\u201c\u201d"
# Between the words of a label: models write "non clone" for "non-clone".
_SEPARATOR = re.compile(rf"(?<=[^\W_])(?:{_BLANK}+|[_-])(?=[^\W_]|\Z)")
_DENIAL = (
    r"(?:\b(?:not|never|cannot|neither|nor|non{no})|n['\u2019]t)"
    rf"(?:{_BLANK}+(?:a|an|the|to|be|being|considered|really|actually|yet))*(?:{_BLANK}|[{_QUOTES}-]){{{{1,4}}}}\Z"
)
_LONGEST_DENIAL = 60  # characters before a label that are looked at
_MARKER = re.compile(r"\b(?:answer|verdict|conclusion|label)\b[\s\"'*_]*(?::|=|\bis\b)", re.IGNORECASE)


def without_thinking(text: str) -> str:
    """Remove what a model wrote while it thought, such as "<think>…</think>", also if an end is missing."""
    return _END_OF_THINKING.sub("", _THINKING.sub("", text))


def check_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Return labels without outer white space; they must be two or more, and differ as words."""
    found = tuple(label.strip() for label in labels)
    if len(found) < 2 or not all(re.search(r"[^\W_]", label) for label in found):
        raise OptionError("{labels}: expected two labels or more, such as pass,fail, with letters or digits")
    if any(_is_spelled(two, one) for one, two in itertools.combinations(found, 2)):
        raise OptionError("{labels}: a label stands twice")
    return found


def _pattern(label: str) -> str:
    """Return a regular expression for a label, with a blank, "-" or "_" between its words."""
    words = map(re.escape, _SEPARATOR.split(label))
    return rf"(?:{_BLANK}{{1,3}}|[_-])".join(words)


def _is_spelled(text: str, label: str) -> bool:
    """Return whether a text is a label, in lower or upper case."""
    return bool(re.fullmatch(_pattern(label), text, re.IGNORECASE))


def read_label(answer: str, labels: Sequence[str]) -> str | None:
    """Find the label that a model's answer names, such as "yes"; None if it names none.

    What follows the last "Answer:" counts, if there is one, and thinking does not. A label that stands alone
    at the beginning of a line or sentence ("Yes, because …") counts before labels inside of a sentence; among
    equals, the last one counts. Labels are whole words, in lower or upper case. A label that is denied ("not
    pass"), listed as a choice ("pass or fail"), or part of another number (4.5, /5) does not count.
    """
    found = find_label(answer, labels)
    return found[0] if found else None


def find_label(answer: str, labels: Sequence[str]) -> tuple[str, int] | None:
    """Return the label that an answer names, and where it begins in the answer."""
    text, begin = blank_thinking(answer), 0
    # The longest label first, because "no" would match the beginning of "no change".
    one = "|".join(map(_pattern, sorted(labels, key=len, reverse=True)))
    # A label may begin or end with a sign, such as "C++" or "-1".
    word = rf"(?<![^\W_])(?P<label>{one})(?:(?<=[\W_])|(?![^\W_]))"
    whole = word.replace("?P<label>", "?:")
    rejected = _rejecter(text, whole, labels)

    def result(found: re.Match[str]) -> tuple[str, int]:
        label = next(label for label in labels if _is_spelled(found["label"], label))
        return label, found.start("label")

    if markers := list(_MARKER.finditer(text)):
        # Models repeat the question, or correct themselves: the last "Answer:" counts.
        begin = markers[-1].end()
        found = re.compile(rf"[\W_]*?{word}", re.IGNORECASE).match(text, begin)
        if found and not rejected(*found.span("label")):
            return result(found)
    # A match takes all signs before a word with it, so that no sign is looked at twice: a reply may be long.
    ends = r"[*_`\"')\]]*(?:[,.!:;\u2014-]|\s*$|\s+[\u2013\u2014-]|\s*\()"
    # The sign of a label such as "-1" is part of the label.
    sign = rf"(?:(?!{whole})[^\w\n])" if any(map(_SIGN.match, labels)) else r"[^\w\n]"
    steps = re.compile(
        rf"(?P<signs>{sign}*+)(?:_*+{word}(?={ends})|\w++|\n|\Z)", re.IGNORECASE | re.MULTILINE
    ).finditer(text, begin)
    alone = [
        step for step in steps if step["label"] and _begins_sentence(text, step.start(), step["signs"], begin)
    ]
    # Inside of a sentence, "a" is a word, and not the label A.
    every = (
        found
        for found in re.compile(word, re.IGNORECASE).finditer(text, begin)
        if len(found[0]) > 1 or found[0] in labels
    )
    for candidates in (alone, every):
        for found in reversed(list(candidates)):
            if not rejected(*found.span("label")):
                return result(found)
    return None


def _rejecter(text: str, word: str, labels: Sequence[str]) -> Callable[[int, int], bool]:
    """Return a function that tells whether a label, by its begin and end in a text, does not count."""
    # "no" denies other labels ("no bug") unless it is a label.
    denial = re.compile(_DENIAL.format(no="" if "no" in map(str.lower, labels) else "|no"), re.IGNORECASE)
    quoted = rf"[{_QUOTES}]{{0,3}}"
    comma = rf"{quoted},{_BLANK}{{0,3}}{quoted}"
    choice = (
        rf"{quoted}(?:,?{_BLANK}{{1,3}}(?:or|and){_BLANK}{{1,3}}|{_BLANK}{{0,3}}[/|]{_BLANK}{{0,3}}){quoted}"
    )
    # Bounded and possessive, so that a long answer takes linear time.
    listed = re.compile(rf"{word}(?:{comma}{word}){{0,20}}+(?:{choice}{word})+", re.IGNORECASE)
    in_list = bytearray(len(text))
    for found in listed.finditer(text):
        in_list[found.start() : found.end()] = b"\1" * (found.end() - found.start())

    def rejects(start: int, end: int) -> bool:
        before, after = text[max(0, start - _LONGEST_DENIAL) : start], text[end : end + 8]
        if denial.search(before):
            return True
        if text[start].isdigit() and re.search(r"\d[.,]\Z|(?<!\w)[-\u2212]\Z|\d\s?/\s?\Z|\bof\s\Z", before):
            return True
        if text[end - 1].isdigit():
            if re.match(r"[.,]\d", after):
                return True
            if re.match(r"\s?/\s?\d+(?!\s?/|\d)", after):
                return False  # 4/5 is no list, but a 4
        return bool(in_list[start])

    return rejects


def blank_thinking(text: str) -> str:
    """Replace thinking by line ends, so that the places of all other characters stay."""
    for pattern in (_THINKING, _END_OF_THINKING):
        text = pattern.sub(lambda found: "\n" * len(found[0]), text)
    return text


def _begins_sentence(text: str, start: int, signs: str, begin: int) -> bool:
    """Return whether a word begins a line or sentence; it follows the signs that begin at `start`."""
    return start == begin or text[start - 1] == "\n" or bool(_SENTENCE_END.search(signs))


@dataclass(frozen=True)
class LabelProbabilities:
    """The probabilities of labels at the place where an answer names one.

    Attributes:
        values: By label; they add up to 1. None if the place leaves open which of two labels a token begins.
        mass: The probability that the model names any of the labels there.
    """

    values: Mapping[str, float] | None
    mass: float


# Finds the label that an answer names, and where the label begins in the answer.
FindLabel = Callable[[str, Sequence[str]], tuple[str, int] | None]


def places_of_label(
    answer: str, places: Sequence[Place], labels: Sequence[str], find: FindLabel = find_label
) -> tuple[Place, ...]:
    """Return the places of an answer at which its label stands, and one more; empty without a label."""
    found = find(answer, labels)
    if found is None:
        return ()
    label, start = found
    # The tokens may have thoughts, or marks of the chat format, before and after the text of the answer.
    # Servers differ in how they write bytes that are no character.
    tokens = [place.token.replace("\ufffd", "") for place in places]
    start = "".join(tokens).rfind(answer[start:].replace("\ufffd", ""))
    if start < 0:
        return ()
    kept, end = list[Place](), 0
    for place, token in zip(places, tokens, strict=True):
        before, end = end, end + len(token)
        if end > start:
            kept.append(place)
        if before >= start + len(label):
            break
    return tuple(kept)


def label_probabilities(places: Sequence[Place], labels: Sequence[str]) -> LabelProbabilities | None:
    """Return the probabilities of labels from the places of an answer's label; None without places.

    A token counts for the label that it begins, in lower or upper case. If it begins several labels, the next
    place decides, as far as the answer went that way.
    """
    if not places:
        return None
    masses, unresolved = dict.fromkeys(labels, 0.0), 0.0
    text, weight = "", 1.0  # what the answer has of its label so far, and the probability of it
    for number, place in enumerate(places):
        own: float | None = None
        for token, logprob in place.alternatives.items():
            read, mass = text + token, weight * math.exp(logprob)
            fitting = _fitting(read, labels)
            if token == place.token and len(fitting) > 1 and number + 1 < len(places):
                own = mass
            elif len(fitting) == 1:
                masses[fitting[0]] += mass
            elif fitting:
                whole = [
                    label
                    for label in fitting
                    if _stripped(read, labels) == _SEPARATOR.sub(" ", label.lower())
                ]
                # An empty token ends the answer: after "no", the label is not "no change".
                if whole and token == "":
                    masses[whole[0]] += mass
                else:
                    unresolved += mass
        if own is None:
            break
        text, weight = text + place.token, own
    named = sum(masses.values())
    mass = named + unresolved
    if named <= 0 or unresolved > _MOST_UNRESOLVED * mass:
        return LabelProbabilities(None, min(mass, 1.0))
    return LabelProbabilities({label: value / named for label, value in masses.items()}, min(mass, 1.0))


def _stripped(text: str, labels: Sequence[str]) -> str:
    """Remove blanks and signs before a label; a label such as "-1" begins with a sign."""
    read = _SEPARATOR.sub(" ", re.sub(r"\A[\s*_`\"'(\[{<#>]+", "", text).lower())
    signs = {label[0] for label in labels}
    return read if read[:1] in signs else re.sub(r"\A[\W_]+", "", read)


def _fitting(text: str, labels: Sequence[str]) -> list[str]:
    """Return the labels that a text begins or names at its beginning."""
    read = _stripped(text, labels)
    if not read:
        return []
    words = {label: _SEPARATOR.sub(" ", label.lower()) for label in labels}
    begun = [label for label, word in words.items() if word.startswith(read)]
    named = [
        label
        for label, word in words.items()
        if len(read) > len(word) and read.startswith(word) and not re.match(r"[^\W_]", read[len(word)])
    ]
    # "no change" names the longer label, although "no" stands there as a word.
    return begun or sorted(named, key=len)[-1:]
