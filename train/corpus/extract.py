"""The comments in source code: extraction, filters that reject unusable ones, and the part of a batch."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from simllm.code.languages.language import LANGUAGE_OF_SUFFIX, Function, load_language
from simllm.code.source_files import LARGEST, is_generated
from simllm.errors import InputError
from simllm.io.packages import missing_package
from simllm.text_cleaning import LONGEST, clean
from train.corpus import comments
from train.corpus.comments import Comment, first_sentence
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.parts import CommentTexts, PartWriter, Tallies, Tally
from train.corpus.sources import Docstring, Item

# The foreign words are frequent in their languages, and are no English words, abbreviations or names.
_ENGLISH = "a an and are as at be by for from if in is it of on or that the this to with"
_FOREIGN = """
aus bei das dem den der des dies ein eine einen für ist mit nicht oder und von wenn werden wird zu zum zur
au aux avec ce cette dans du elle est et être il le les ou pas pour que qui sur un une
con cuando del el esta este los las lo para por su sus una uno y
da dos em não nas pela pelo são uma che di della gli nel sono
een het naar niet voor wordt zijn och att som är inte till jest nie się dla lub
"""
_english, _foreign = frozenset(_ENGLISH.split()), frozenset(_FOREIGN.split())


def is_english(text: str) -> bool:
    """Return whether a text is probably English.

    It is not if over 10% of its letters are not ASCII, or if common words of other languages (at least two)
    outnumber its common English words.

    Examples:
        >>> is_english("Gibt den Namen der Klasse zurück.")
        False
    """
    if not text.isascii():
        letters = [letter for letter in text if letter.isalpha()]
        if sum(letter.isascii() for letter in letters) < 0.9 * len(letters):
            return False
    words = re.findall(r"\w+", text.lower())
    # One foreign word alone may be a name.
    return sum(word in _foreign for word in words) <= max(1, sum(word in _english for word in words))


LONGEST_SUMMARY = 1_000  # characters; the longest sentence in Python's library has 664


@dataclass(frozen=True)
class DocumentedFunction:
    """A function with its raw documentation; the summary is without markup, "" if there is none."""

    function: Function
    language: str
    summary: str


def rejecting_filter(documented: DocumentedFunction) -> str | None:
    """Return the name of the first filter that rejects a function's comment; None if all accept it."""
    return next((name for name, rejects in FILTERS.items() if rejects(documented)), None)


_TEST_NAME = re.compile(
    r"(?:^|\.)(?:test_|test[A-Z]|it_|(?:Test|Benchmark|Example|Fuzz)(?:[A-Z_]|$))"
    r"|(?:^|\.)(?:Test[A-Z]\w*|\w+Tests?(?:Case)?)\."
)
_TEST_HEAD = re.compile(
    r"(?:\s*@[\w.]+(?:\([^)]*\))?)*?\s*@(?:Test|ParameterizedTest|Before|After|BeforeEach|AfterEach)\b"
)
_OTHER = re.compile(
    r"(?m)^[ \t]*@(?:file(?:overview)?|module|license|typedef|callback|namespace|class|constructor|interface|"
    r"enum|event|preserve|extends|augments|mixin|package|record|struct)\b"
)
_INHERITED = re.compile(r"(?i)@inheritdoc\b|@override\b")
_IMPLEMENTS = re.compile(
    r"(?i)(?:[\w.]+ )?(?:implements|implementation of|overrides|inherited from|satisfies)(?: the)? [^\s(]+"
    r"(?:\([^()]*\))?(?: (?:interface|method))?\W*$|\(non-javadoc\)"
)
_LICENCE = re.compile(
    r"(?i)\bcopyright\b.{0,20}(?:\d{4}|\(c\)|©)|licen[cs]ed (?:under|to)|spdx-license|all rights reserved"
    r"|permission is hereby granted"
)
_DEPRECATED = re.compile(
    r"(?i)\W*deprecated\b"
    r"|(?:this|the) (?:method|function|class|api|constructor)s? (?:is|are|has been|was|will be)"
    r" (?:now )?deprecated"
)
_TODO = re.compile(r"\W*(?:TODO|FIXME|XXX|HACK|BUG|TBD)\b|(?i:to ?do\s*:)")
_TEMPLATE = re.compile(
    r"(?i)(?:todo )?auto-?generated (?:method|constructor|javadoc)|insert (?:description|documentation)|"
    r"(?:description|summary|\[?method description\]?|documentation) ?(?:here|goes here|of \w+ method)?\.?$|"
    r"missing (?:doc|description)|add (?:description|documentation)|no description"
)
_ACCESSOR = re.compile(
    r"(?i)(?:getter|setter|accessor|mutator)s?(?: method)?(?: (?:and|/|&) \w+)?(?: for| of)?"
    r"(?:\W+[\w$]+){1,3}\W*$"
)
_SEE = re.compile(
    r"(?i)\(?(?:see(?: also)?|refer to|same as|alias(?:es)? (?:of|for|to)|like)(?::| the)? [^\s(]+"
    r"(?:\([^()]*\))?\W*$"
)
_CODE = re.compile(
    r"(?!.*(?:\b[a-z]+ ){3})"  # prose
    r"(?:.*[=(].*[;{]$|\{.*\}$|[\w.$]+ ?:?=(?!=) ?\S|(?:if|for|while) ?\(|[\w.$>:-]+\([^)]*\);?$|"
    r"(?:return|import|var|let|const) [\w.]+;?$)"
)
# The rest of the sentence was code, which was removed.
_UNFINISHED = re.compile(
    r".*\b(?:(?<!as )is|are|an?|the|of|and|or|by|(?:so|such) that|where|computes|calculates|performs|solves)$"
)
_WORD = re.compile(r"(?:\s|\A)\W*[A-Za-z]")
_TWO_WORDS = re.compile("[^a-z]*+[a-z][^ ]*+ .*[a-z]")


def _begins(pattern: re.Pattern[str]) -> Callable[[DocumentedFunction], bool]:
    """Make a filter that rejects a comment if the pattern matches the beginning of its summary."""
    return lambda documented: bool(pattern.match(documented.summary))


def _is_test(documented: DocumentedFunction) -> bool:
    return bool(_TEST_NAME.search(documented.function.name) or _TEST_HEAD.match(documented.function.head))


def _documents_other_thing(documented: DocumentedFunction) -> bool:
    """Return whether a tag such as `@class` shows that the comment documents a file, a class or a type."""
    # Only these languages have such tags.
    return documented.language in ("javascript", "typescript", "php") and bool(
        _OTHER.search(documented.function.text)
    )


def _is_inherited(documented: DocumentedFunction) -> bool:
    """Return whether the comment is only `{@inheritDoc}`, `Implements Runnable.run` or the like."""
    return bool(
        _IMPLEMENTS.match(documented.summary)
        if documented.summary
        else _INHERITED.search(documented.function.raw)
    )


# The filters by name, in the order of use. A rejected comment counts under the first filter that rejects it.
FILTERS: dict[str, Callable[[DocumentedFunction], bool]] = {
    "test": _is_test,
    "about something else": _documents_other_thing,
    "inherited": _is_inherited,
    "no prose": lambda documented: not documented.summary,
    "too long": lambda documented: len(documented.summary) > LONGEST_SUMMARY,
    "licence": lambda documented: bool(_LICENCE.search(documented.summary)),
    "deprecated": _begins(_DEPRECATED),
    "template": _begins(_TEMPLATE),
    "to do": _begins(_TODO),
    "accessor": _begins(_ACCESSOR),
    "see also": _begins(_SEE),
    "code": _begins(_CODE),
    "unfinished": _begins(_UNFINISHED),
    "not English": lambda documented: not is_english(documented.summary),
    "fewer than two words": lambda documented: len(_WORD.findall(documented.summary)) < 2,
}


def clean_texts(comment: Comment, excluded: ExcludedTexts, tally: Tally) -> CommentTexts:
    """Clean the texts of a comment, and leave out unusable ones."""
    rest = comment.description.removeprefix(comment.summary).lstrip(" :")
    paragraphs = [text for text in re.split(r"\n\s*\n", rest) if text.strip()]
    summary, *others = (_clean_text(text, excluded, tally) for text in (comment.summary, *paragraphs))
    return CommentTexts(vars(comment), summary, [text for text in others if text])


def _clean_text(raw: str, excluded: ExcludedTexts, tally: Tally) -> str:
    """Clean one text; "" if it is too long, has fewer than two words, or is an excluded text."""
    tally.counts["read"] += 1
    if len(raw) > LONGEST:
        tally.add("too long", raw)
        return ""
    text = clean(raw)
    if not _TWO_WORDS.match(text):
        tally.add("fewer than two words", raw)
    elif text in excluded:
        tally.add("in a rated set", text)
    else:
        return text
    return ""


def extract(
    code: bytes, language: str, dropped: Counter[str], on_dropped: Callable[[str, str], None] | None = None
) -> Iterator[Comment]:
    """Yield the comments of the documented functions in a source file, in the order of the file.

    `dropped` counts rejected comments by the filter, and also a file that is too large or generated.
    `on_dropped` is called with the same name and the raw comment or the beginning of the file. Raises
    KeyError for an unknown language.
    """

    def drop(name: str, text: str) -> None:
        dropped[name] += 1
        if on_dropped:
            on_dropped(name, text)

    if len(code) > LARGEST:
        return drop("file too large", "")
    if is_generated(code):
        return drop("generated file", code[:300].decode(errors="replace"))
    for function in load_language(language).functions(code.replace(b"\r\n", b"\n")):
        if comment := make_comment(function, language, drop):
            yield comment
    return None


def make_comment(function: Function, language: str, drop: Callable[[str, str], None]) -> Comment | None:
    """Convert the raw documentation of a function; if a filter rejects it, call `drop` and return None.

    The repository, the path and the licence of the comment are still "".
    """
    paragraphs = comments.paragraphs(function.text, language)
    summary = first_sentence(paragraphs[0]).rstrip(" :") if paragraphs else ""
    description = "\n\n".join(paragraphs)
    if reason := rejecting_filter(DocumentedFunction(function, language, summary)):
        drop(reason, function.raw)
        return None
    # A description that only repeats the summary would be stored twice.
    more = description if description.rstrip(" :") != summary else ""
    return Comment(summary, more, language, function.name, overrides=function.supertypes)


def make_part(data: bytes, file: Path, excluded: ExcludedTexts) -> None:
    """Write the part of a batch; `data` is the pickled pair of the source's name and the batch."""
    # Safe: pickled by the same run, never read from disk.
    source, batch = pickle.loads(data)
    tallies, part = Tallies(), PartWriter()
    for item in batch:
        for comment, single in _comments(item, tallies):
            row = clean_texts(comment, excluded, tallies.texts)
            if row.texts:
                part.add(comment, row, single)
    part.write(file, {"source": source, "found": tallies.facts()})


def _comments(item: Item, tallies: Tallies) -> Iterator[tuple[Comment, bool]]:
    """Yield the comments of an item, each with whether its function's name is unique in the source file."""
    if isinstance(item, Comment):
        yield item, False
        return
    if isinstance(item, Docstring):
        yield from ((comment, False) for comment in _from_docstring(item, tallies.comments))
        return
    tallies.files.counts["read"] += 1
    tallies.files.counts["bytes"] += len(item.data)
    comments = []
    try:
        for comment in extract(
            item.data, item.language, tallies.comments.counts, tallies.comments.add_example
        ):
            comments.append(comment)
    except ImportError as error:
        raise InputError(f"{item.language}: {missing_package(error.name, 'code')}") from None
    # An unusual file may break a parser; the other files are read.
    except Exception as error:
        where = f"{item.repository}: {item.path}"
        tallies.files.add("unreadable code", f"{where}: {type(error).__name__}: {error}")
    names = Counter(comment.function for comment in comments)
    for comment in comments:
        placed = replace(comment, path=item.path, repository=item.repository, licence=item.licence)
        yield placed, bool(comment.function) and names[comment.function] == 1


def _from_docstring(item: Docstring, tally: Tally) -> Iterator[Comment]:
    """Yield the comment, unless a filter rejects it or its language is unknown."""
    if item.language not in LANGUAGE_OF_SUFFIX.values():
        tally.add(f"of {item.language or 'no language'}", item.text)
        return
    function = Function(item.function, item.text, item.text, head="")
    if comment := make_comment(function, item.language, tally.add):
        yield replace(comment, path=item.path, repository=item.repository)
