"""The cleaning of summaries (SIMLLM, section 5.1), used for training and scoring alike.

The rules are written as a `tokenizers` normalizer, not as Python code, because the same
object travels inside `tokenizer.json`: every library that loads the model cleans alike.
Cleaning is defined for every `str`. Cleaning a cleaned text again changes nothing, up to
`LONGEST` characters.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers.normalizers import Normalizer

# Characters of a text that are read. The time of some rules grows with the square of the length,
# and no summary is so long.
LONGEST = 10_000

# A comment block opens with one of these; the summary follows it.
_OPENING = r"(?>/\*+|//+[!/]*|#+!?|\"\"\"|''')"

# Step 1: the summary is what stands before the first blank line of a comment block and
# before the first block tag (Javadoc, JSDoc, YARD, Sphinx); the block's own marks go.
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

# Step 2, once everything is ASCII. Corpora are half pre-tokenized ("foo ( bar ) . 1 . 5"),
# so every mark stands alone, but for the points in numbers and the apostrophes in words.
# No rule may insert at the very start: `tokenizers` panics there.
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
    """Return the cleaned summary of `text`: lower-case printable ASCII, single spaces.

    Only the first `LONGEST` characters are read.

    >>> clean("/** Gets the user's  NAME (1 . 5 times). */")
    "gets the user's name ( 1.5 times ) ."
    """
    return normalizer().normalize_str(encodable(text[:LONGEST]))


def encodable(text: str) -> str:
    """Return `text` with lone surrogates, which no UTF-8 library accepts, replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@cache
def normalizer() -> Normalizer:
    """Return the cleaning as a `tokenizers` normalizer, the form kept in `tokenizer.json`."""
    from tokenizers import Regex, normalizers

    def rules(pairs: list[tuple[str, str]]) -> list[Normalizer]:
        return [normalizers.Replace(Regex(pattern), new) for pattern, new in pairs]

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
