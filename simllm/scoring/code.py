"""Scores of summaries against the code that they describe, with or without a reference.

The code is read as words, so that the tokenizer of summaries reads it, too. The score is the cosine between
the embeddings of code and summary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from torch import Tensor

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.metrics.interface import Example, check_examples
from simllm.model.engines import Engine
from simllm.model.network import cosine
from simllm.model.tokenizer import Tokenizer
from simllm.scoring import embedding
from simllm.scoring.scores import about_truncated

# Regular expressions instead of parsers: scores must not depend on the parsers that are installed. Strings
# are matched because they may contain comment marks.
_STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`[^`]*`"
_BLOCK = r"(?P<comment>/\*(?s:.*?)(?:\*/|\Z)|//[^\n]*"
_C_LIKE = re.compile(rf"{_BLOCK})|{_STRING}")
_PYTHON = re.compile(rf"(?P<comment>\#[^\n]*)|\"\"\"(?s:.*?)(?:\"\"\"|\Z)|'''(?s:.*?)(?:'''|\Z)|{_STRING}")
_RUBY = re.compile(rf"(?P<comment>\#[^\n]*|(?ms:^=begin\b.*?(?:^=end\b|\Z)))|{_STRING}")
_PHP = re.compile(rf"{_BLOCK}|\#(?!\[)[^\n]*)|{_STRING}")
# Without a known language, `#` begins a comment only at the beginning of a line, but not in `#include`.
_OTHER = re.compile(rf"{_BLOCK}|(?m:^[ \t]*\#(?![a-z])[^\n]*))|{_STRING}")
_COMMENTS = {"python": _PYTHON, "ruby": _RUBY, "php": _PHP} | dict.fromkeys(
    ("java", "javascript", "typescript", "go", "cpp"), _C_LIKE
)
# Only that of the first function; searching again from each `def` would take quadratic time.
_DOCSTRING = re.compile(
    r"\A((?>(?s:.*?)\bdef\b)(?s:.*?):[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*+[ \t]*)"
    r"[rRuU]?(?:(\"\"\"|''')(?s:.*?)(?:(?<!\\)\2|\Z)|\"[^\"\n]*\"|'[^'\n]*')[ \t]*(?=\n|\Z)"
)
# Operators are kept where they decide the meaning; those of pointers, types and arrows are no words.
_WORD = re.compile(
    r"[^\W\d_a-z]+(?![a-z])|[^\W\d_a-z]?[^\W\d_A-Z]+|\d+(?:\.\d+)?"
    r"|==|!=|<=|>=|&&|\|\||!|(?<=\s)(?:[<>*/%+]|-)=?(?=\s)"
)
LONGEST_CODE = 20_000  # characters; the model reads a few hundred words


def words(code: str, language: str | None = None) -> str:
    """Convert code to lower-case words, without comments, docstring and punctuation.

    Identifiers are split at capital letters and underscores. Words in strings are kept, too.

    Examples:
        >>> words("int maxOf(int a, int b) { return a >= b ? a : b; }  // the maximum", "java")
        'int max of int a int b return a >= b a b'
    """
    code = code[:LONGEST_CODE]
    if language == "python":
        code = _DOCSTRING.sub(r"\1", code, count=1)
    comments = _COMMENTS.get((language or "").lower(), _OTHER)
    return " ".join(_WORD.findall(comments.sub(lambda m: " " if m["comment"] else m[0], code))).lower()


class CodePair(NamedTuple):
    """A piece of code, usually one function, and a text that may describe it."""

    code: str
    summary: str
    language: str | None = None


AGAINST = ("reference", "code", "both")  # what a candidate is scored against


def choose_against(examples: Sequence[Example], against: str | None) -> str:
    """Return what examples are scored against: by default the reference, or the code if none has a reference.

    InputError for an unknown value of `against`, or if some examples have a reference and others have none.
    """
    if against is not None:
        if against not in AGAINST:
            raise InputError(f"against {against!r}: expected one of {', '.join(AGAINST)}")
        return against
    check_examples(examples)
    without = [index for index, example in enumerate(examples) if example.reference is None]
    if not without:
        return "reference"
    if len(without) < len(examples):
        raise InputError(f"examples[{without[0]}]: has no reference, but others have; name `against`")
    return "code"


def code_pairs(examples: Sequence[Example]) -> list[CodePair]:
    """Return the code and the candidate of each example; InputError if one has no source."""
    check_examples(examples)
    pairs = []
    for index, example in enumerate(examples):
        if example.source is None:
            raise InputError(f"examples[{index}]: has no source, the code that the candidate describes")
        pairs.append(CodePair(example.source, example.candidate, example.language))
    return pairs


@dataclass(frozen=True)
class FitScores:
    """The scores of n pairs of code and summary, in input order.

    Attributes:
        values: (n,) cosines of the embeddings of code and summary; 0 where one of the two has no words.
        fits: (n,) probabilities that the summary fits the code; None if the model cannot estimate them.
        empty: Number of pairs in which code or summary has no words.
        truncated: Number of codes and summaries that are longer than the model's longest input.
        warnings: What changes how the scores are read, such as the number of truncated texts.
    """

    values: Floats
    fits: Floats | None
    empty: int
    truncated: int
    warnings: tuple[str, ...] = ()


_CHUNK = 1024  # pairs whose embeddings are in memory at once


@dataclass(frozen=True)
class CodeReader:
    """Scorer of pairs of code and summary.

    Attributes:
        engine: The encoder of summaries.
        pool: Takes (B, L, D) hidden states and a (B, L) mask, and returns (B, D) embeddings.
        on_long: What happens to texts that are too long for the encoder: `truncate`, `window` or `error`.
    """

    tokenizer: Tokenizer
    engine: Engine
    pool: Callable[[Tensor, Tensor], Tensor]
    on_long: str = "truncate"

    @property
    def signature(self) -> str:
        """Name of the model that reads code."""
        return "shared"

    def score(self, pairs: Sequence[CodePair]) -> FitScores:
        """Score n pairs; InputError for a long text if `on_long` is `error`."""
        values, empty, truncated = np.zeros(len(pairs)), 0, 0
        for start in range(0, len(pairs), _CHUNK):
            part = pairs[start : start + _CHUNK]
            code = self._tokenize([words(pair.code, pair.language) for pair in part])
            summaries = self._tokenize([pair.summary for pair in part])
            embeddings = (embedding.embed(self.engine, texts, self.pool) for texts in (code, summaries))
            wordless = code.empty | summaries.empty
            values[start : start + _CHUNK] = np.where(wordless, 0.0, cosine(*embeddings))
            empty += int(wordless.sum())
            truncated += len(code.long) + len(summaries.long)
        longest = self.engine.encoder.config.max_length
        found = about_truncated(2 * len(pairs), truncated, longest, self.on_long)
        found += (
            [f"{empty} of {len(pairs)} pairs have a code or summary without words; they score 0"]
            if empty
            else []
        )
        return FitScores(values, None, empty, truncated, tuple(found))

    def combine(self, by_reference: Floats, by_code: FitScores) -> Floats:
        """Combine the (n,) scores against references with the scores of the same candidates against code."""
        return (by_reference + by_code.values) / 2

    def _tokenize(self, texts: Sequence[str]) -> embedding.Tokenized:
        longest = self.engine.encoder.config.max_length
        return embedding.tokenize(self.tokenizer, texts, longest, self.on_long)
