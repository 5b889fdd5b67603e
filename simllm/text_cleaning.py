"""Cleaning of code summaries (SIMLLM paper, section 5.1), and their division into sentences and clauses.

Every `str` can be cleaned, even if it is not valid Unicode. If a text has at most `LONGEST` (10,000)
characters, cleaning it twice gives the same result as cleaning it once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers.normalizers import Normalizer

# Only this many characters of a text are read. The time of some rules grows with the square of the
# length, and no summary is that long.
LONGEST = 10_000
_MOST_CLAUSES = 256

# A comment block opens with one of these; the summary follows it.
_OPENING = r"(?>/\*+|//+[!/]*|#+!?|\"\"\"|''')"

# Step 1: keep the text before the first blank line of a comment block and before the first block tag
# (Javadoc, JSDoc, YARD, Sphinx); remove the comment marks.
_SUMMARY = [
    (rf"\A\s*{_OPENING}(?>[\s*/#!]*)[\s\S]*?\K\n[ \t*/#!]*\n[\s\S]*\z", ""),
    (r"\n[ \t*/#!]*(?:@[A-Za-z]|:(?:param|type|arg|returns?|rtype|raises?)\b)[\s\S]*\z", ""),
    (r"\n[ \t]*(?:\*+|//+|#+)(?=\s)", " "),
    (rf"\A(?:[\s*]|{_OPENING})+", ""),
    (r"(?:\s*(?:\*+/|\"\"\"|'''))+\s*\z", ""),
]

# Characters with an obvious ASCII form that compatibility decomposition does not give.
_ASCII_FORMS = [
    ("[\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc]", "'"),
    ("[\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb]", '"'),
    ("[\u2010-\u2015\u2212\u00ad]", "-"),
    ("[\u00d7\u2715]", "x"),
    ("[\u2044\u00f7]", "/"),
    ("[\u066b\u00b7]", "."),  # the decimal separators of Arabic and of older English print
    ("[\u2192\u21d2]", "->"),
    ("\u2264", "<="),
    ("\u2265", ">="),
    ("=\u0338", "!="),  # "not equal", once decomposed
    ("\u00df", "ss"),
    ("\u00e6", "ae"),
    ("\u00c6", "AE"),
    ("\u0153", "oe"),
    ("[\u00f8\u00d8]", "o"),
    ("[\u0142\u0141]", "l"),
    ("\u03bc", "u"),  # the micro sign, once decomposed
]

# Step 2, for ASCII text. Half of the corpora are tokenized already ("foo ( bar ) . 1 . 5"), so put
# spaces around each mark, except for points in numbers and apostrophes in words.
# No rule may insert at the start of the text, because `tokenizers` panics then.
_MARK = r"[!-/:-@\[-`{-~]"
_SPACING = [
    (r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))", ""),
    (rf"(?!\A)(?={_MARK})|(?<={_MARK})(?!\z)", " "),
    (r"\s+", " "),
    (r"(?<=[0-9]) \. (?=[0-9])", "."),
    (r"(?<=[A-Za-z]) ' (?=(?:[stdmSTDM]|re|ve|ll|RE|VE|LL)\b)", "'"),
    (r"([-=*_~#!?])\K(?: \1){2,}", ""),
]


def clean(text: str) -> str:
    """Clean a code summary: remove comment marks, convert to lower-case ASCII, put spaces around punctuation.

    Two rules remove the end of a text. If the second or a later line begins with a block tag such as
    `@param`, everything from this tag on is removed. If the text begins with a comment mark such as `/**`,
    everything from the first blank line on is removed. Only the first 10,000 characters are read.

    Examples:
        >>> clean("/** Gets the user's  NAME (1 . 5 times). */")
        "gets the user's name ( 1.5 times ) ."
    """
    return normalizer().normalize_str(encodable(text[:LONGEST]))


_BOILERPLATE = re.compile(
    r"(?i)\W*(?:non-javadoc\b|@?inheritdoc\b|(?:todo\W+)?auto-?generated (?:method|constructor|javadoc)\b"
    r"|(?:todo|fixme|xxx|tbd)\b|@?see(?: also)? \S+\s*\Z)"
)


def is_boilerplate(text: str) -> bool:
    """Return whether a comment says nothing about its code.

    Examples:
        >>> is_boilerplate("/* (non-Javadoc)"), is_boilerplate("see the list of tokens")
        (True, False)
    """
    return bool(_BOILERPLATE.match(text))


def encodable(text: str) -> str:
    """Make a text encodable in UTF-8: replace lone surrogates (halves of a character) by U+FFFD."""
    if text.isascii():
        return text
    # UTF-16 joins two surrogates that form a character, and replaces only lone ones.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@cache
def normalizer() -> Normalizer:
    """Return the rules that clean code summaries, as a normalizer object of the package `tokenizers`."""
    from tokenizers import Regex, normalizers

    def replacements(pairs: list[tuple[str, str]]) -> list[Normalizer]:
        return [normalizers.Replace(Regex(pattern), new) for pattern, new in pairs]

    # The rules are stored in the model's `tokenizer.json`, so that every library that loads the model cleans
    # texts in the same way. Therefore they are made of regular expressions alone.
    return normalizers.Sequence(
        [
            *replacements([("\r\n?|[\v\f\u0085\u2028\u2029]", "\n")]),
            normalizers.NFKD(),
            *replacements(_ASCII_FORMS),
            normalizers.StripAccents(),
            *replacements([(r"[^\x20-\x7e\n]", " ")]),
            *replacements(_SUMMARY),
            *replacements(_SPACING),
            normalizers.Strip(),
            normalizers.Lowercase(),
        ]
    )


# A rule is a pattern and its replacement. With `(?m)`, ^ and $ match at every line.
Rules = list[tuple[re.Pattern[str], str]]


def rules(*pairs: tuple[str, str]) -> Rules:
    """Compile rules from pairs of a pattern and its replacement."""
    return [(re.compile(pattern), new) for pattern, new in pairs]


FENCES = rules((r"(?m)^[ \t]*(```|~~~)(?s:.*?)(?:^[ \t]*\1[^\n]*$|\Z)", "\n"))
EMPHASIS = [
    (r"(?<![\w*\\])\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*(?![\w*])", r"\1"),
    (r"(?<![\w*\\])\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*(?![\w*])", r"\1"),
]
MARKDOWN = rules(
    (r"!\[[^\]]*\]\([^)]*\)", ""),
    (r"\[([^\[\]]+)\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*\)", r"\1"),
    (r"\[([^\[\]]+)\]\[[^\[\]]*\]", r"\1"),
    (r"(?<!`)(`{1,4})(?=\S)(.{1,500}?)(?<=\S)\1(?!`)", r"\2"),
    *EMPHASIS,
    (r"(?<![\w_])__?(?=[A-Za-z])([A-Za-z][^_\n]*?)(?<=\w)__?(?![\w_])", r"\1"),
)
HEADING = re.compile(r"#{1,6}[ \t]+\S|=+[ \t]+\S|[-=~^*_]{3,}\s*\Z")
ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,2}[.)]|\([a-z0-9]\))\s+(?=\S)")

_END = re.compile(r"(?<![.!?])[.!?]++[\"')\]]*+(?=\s)|[。！？]")  # noqa: RUF001
_VISIBLE = re.compile(r"\S")

# Abbreviations. After those in the first list, a period never ends a sentence; after those in the second
# list, it ends one unless a small letter or punctuation follows.
_NEVER = """
e.g eg i.e ie cf vs viz approx resp incl excl fig eq eqs sec dr mr mrs ms prof a.k.a aka w.r.t wrt dept eds
vol pp al
"""
_SOMETIMES = """
etc inc ltd co jr sr st a.m p.m u.s max min num nos ed p ch ca def param params arg args ex ref refs spec
"""
_never, _sometimes = frozenset(_NEVER.split()), frozenset(_SOMETIMES.split())


def sentence_ends(paragraph: str) -> Iterator[int]:
    """Yield the positions after the ends of a paragraph's sentences, but not the end of the paragraph."""
    word = re.search(r"\w", paragraph)
    if not word:
        return
    for match in _END.finditer(paragraph, word.end()):
        before = paragraph[max(0, match.start() - 40) : match.start()]
        after = _VISIBLE.search(paragraph, match.end())
        if _ends(before, match[0], after[0] if after else ""):
            yield match.end()


def _ends(before: str, mark: str, after: str) -> bool:
    """Return whether `mark`, with its closing quotes or brackets, ends a sentence between `before` and
    `after`.
    """
    word = re.split(r"[\s(\[\"'/]", before)[-1].lower()
    # The mark itself is quoted: '.'
    quoted = len(mark) > 1 and before[-1:] in ("'", '"', "(", " ")
    if quoted or word in _never:
        return False
    if word in _sometimes or mark.startswith("..") or not mark.startswith("."):
        return not (after.islower() or after in (",", ";", ":", ")", "]"))
    # J. Doe
    initial = len(word) == 1 and before[-1:].isupper() and not after.islower()
    return not initial and after not in (",", ";", ")")


# Openers of what language models write: "The function `add` is used to add …", "Here is a summary:".
_NAME = r"(?: [\"']?(?:\w+_\w*|[a-z]+[A-Z]\w*|[\w.]+\(\)|\w+\.\w[\w.]*)(?:\(\))?[\"']?)?"
_THING = (
    r"(?:(?i:the|this|your|a) )?(?:(?:provided|given|above|following) )?(?:(?:[Jj]ava|[Pp]ython|static) )?"
    r"(?:code|function|method|class|snippet|script|program)(?: (?:snippet|provided|you provided|above))*"
)
_PURPOSE = r"(?:(?:main|primary|overall) )?(?:purpose|goal|role|aim)"
_USED = r"(?:is (?:used|designed|intended|responsible) (?:to|for) |(?:then|also|first|simply) )*"
_OPENER = re.compile(
    r"(?:(?i:overall|finally|in (?:summary|essence|short|conclusion)|to summari[sz]e|additionally),? )?"
    rf"(?:(?i:the|its|their) {_PURPOSE}(?: of {_THING}{_NAME})? is to |{_THING}'s {_PURPOSE} is to "
    rf"|(?:{_THING}{_NAME}|(?i:it)) {_USED}"
    rf"(?:(?:is|defines) an? (?:\w+ )?(?:method|function)(?: (?:named|called))?{_NAME}"
    r"(?: (?:in|within|of) a class)? that )?"
    rf"|(?i:the){_NAME} (?:function|method|class) {_USED})(?=[a-z])"
)
_ANNOUNCEMENT = re.compile(r"(?i:here(?:'s| is| are)|below is|sure|certainly)\b[^.\n]*:\s*\Z")

# Clauses begin after punctuation and before words that join clauses.
_JOINT = re.compile(
    r"(?i)[;:,)]\s+(?:(?:and|or|but|then)\s+)*|\s+\(\s*|\s+-\s+|\s+(?:(?:and|or|but|then)\s+)+|\s+(?=(?:which|that|if|when|"
    r"while|where|because|since|so|by|after|before|unless|until|otherwise|based on|in order to|depending on|"
    r"using)\s)"
)
_SHORTEST = 3  # words of a clause; shorter ones join their neighbours
_WORD = re.compile(r"\w+")
_COMMENT = re.compile(r"\s*(?:/\*|//|\"\"\"|''')")
_HASHES = re.compile(r"\A\s*#+!?[ \t]*[^\n]*(?:\n[ \t]*#[^\n]*)+\s*\Z")
# Without a match, a text surely is a single sentence.
SEVERAL_SENTENCES = re.compile(r"[.!?][\"')\]*_`]*\s+\S|[。！？]|\n\s*(?:\n|[-*+•]\s|\d{1,2}[.)]\s)")  # noqa: RUF001
# Texts that are tokenized already: "1 . 5", "e . g .".
_TOKENIZED = rules((r"(?<=[0-9]) \. (?=[0-9])", "."), (r"(?i)\b([ei]) \. ([ge]) \.", r"\1.\2."))
_TAG = re.compile(r"\n[ \t]*(?:@[A-Za-z]|:(?:param|type|arg|returns?|rtype|raises?)\b)")


@dataclass(frozen=True)
class Parts:
    """A text of several sentences, divided into clauses of at least three words where that is possible.

    Attributes:
        texts: The clauses, in order, without Markdown and without openers such as "This method". Of more than
            256, the last holds the rest.
        sentences: Number of sentences.
        words: Number of words in the whole text, with openers and blocks of code.
    """

    texts: tuple[str, ...]
    sentences: int
    words: int


def count_words(text: str) -> int:
    """Return the number of words in a text; identifiers such as `get_name` count as one."""
    return len(_WORD.findall(text))


def divide(text: str) -> Parts:
    """Divide a text into its clauses, without headings, blocks of code and lead-ins.

    As `clean` does, this drops block tags such as `@param`, and what follows a blank line in a comment block.
    """
    text = encodable(text[:LONGEST])
    text = re.sub(r"\r\n?|[\v\f\u0085\u2028\u2029]", "\n", text)
    if _COMMENT.match(text) or _HASHES.match(text):
        prose = _comment_rules().normalize_str(text)
    else:
        prose = text[: tag.start()] if (tag := _TAG.search(text)) else text
    words = count_words(prose)
    for pattern, new in (*_TOKENIZED, *FENCES):
        prose = pattern.sub(new, prose)
    sentences = [s for block in _paragraphs(prose) for s in _sentences(block)]
    clauses = [clause for s in sentences for clause in _clauses(_without_opener(s))]
    if len(clauses) > _MOST_CLAUSES:  # all clauses of two texts are compared with each other
        clauses[_MOST_CLAUSES - 1 :] = [" ".join(clauses[_MOST_CLAUSES - 1 :])]
    return Parts(tuple(clauses), len(sentences), words)


@cache
def _comment_rules() -> Normalizer:
    """Return the rules that take the summary out of a comment block."""
    from tokenizers import Regex, normalizers

    return normalizers.Sequence([normalizers.Replace(Regex(pattern), new) for pattern, new in _SUMMARY])


def _paragraphs(prose: str) -> Iterator[str]:
    """Yield the paragraphs and list items of Markdown, each on one line, without markup."""
    block: list[str] = []
    for line in [*prose.split("\n"), ""]:
        is_item = ITEM.match(line)
        if block and (is_item or not line.strip() or HEADING.match(line)):
            joined = " ".join(" ".join(block).split())
            for pattern, new in MARKDOWN:
                joined = pattern.sub(new, joined)
            yield joined
            block = []
        if line.strip() and not HEADING.match(line):
            block.append(ITEM.sub("", line, count=1) if is_item else line)


def _sentences(paragraph: str) -> Iterator[str]:
    """Yield the sentences of a paragraph that have words and announce more than what follows."""
    start = 0
    for end in (*sentence_ends(paragraph), len(paragraph)):
        sentence = paragraph[start:end].strip()
        if _WORD.search(sentence) and not _ANNOUNCEMENT.match(sentence):
            yield sentence
        start = end


def _without_opener(sentence: str) -> str:
    """Remove an opener such as "This method is used to" from a sentence."""
    opener = _OPENER.match(sentence)
    return sentence[opener.end() :] if opener else sentence


def _clauses(sentence: str) -> list[str]:
    """Divide a sentence into clauses of at least three words; a shorter sentence is one clause."""
    spans: list[list[int]] = []
    start = 0
    for end, following in [*((m.start(), m.end()) for m in _JOINT.finditer(sentence)), (len(sentence),) * 2]:
        words = count_words(sentence[start:end])
        if spans and (words < _SHORTEST or count_words(sentence[slice(*spans[-1])]) < _SHORTEST):
            spans[-1][1] = end
        elif words:
            spans.append([start, end])
        start = following
    return [sentence[a:b].strip() for a, b in spans]
