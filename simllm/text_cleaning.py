"""Cleaning of code summaries, for training and scoring (SIMLLM paper, section 5.1).

Every `str` can be cleaned, even if it is not valid Unicode. If a text has at most `LONGEST` (10,000)
characters, cleaning it twice gives the same result as cleaning it once.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers.normalizers import Normalizer

# Only this many characters of a text are read. The time of some rules grows with the square of the
# length, and no summary is that long.
LONGEST = 10_000

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

    def rules(pairs: list[tuple[str, str]]) -> list[Normalizer]:
        return [normalizers.Replace(Regex(pattern), new) for pattern, new in pairs]

    # The rules are stored in the model's `tokenizer.json`, so that every library that loads the model cleans
    # texts in the same way. Therefore they are made of regular expressions alone.
    return normalizers.Sequence(
        [
            *rules([("\r\n?|[\v\f\u0085\u2028\u2029]", "\n")]),
            normalizers.NFKD(),
            *rules(_ASCII_FORMS),
            normalizers.StripAccents(),
            *rules([(r"[^\x20-\x7e\n]", " ")]),
            *rules(_SUMMARY),
            *rules(_SPACING),
            normalizers.Strip(),
            normalizers.Lowercase(),
        ]
    )
