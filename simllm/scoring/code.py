"""Scores of summaries against the code that they describe, with or without a reference.

The code is read as words, so that the tokenizer of summaries reads it, too. The score is the weighted mean of
the cosine between the embeddings of code and summary, and of the probability that the summary fits the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simllm.array_types import Floats, Floats32
from simllm.errors import InputError
from simllm.io.tables import list_some
from simllm.metrics.interface import Example, check_examples
from simllm.model.code_model import CodeModel
from simllm.model.config import cosine
from simllm.model.saved_model import SavedModel
from simllm.scoring import embedding
from simllm.scoring.embedding import (
    EncodedTexts,
    Engine,
    Tokenized,
    TokenVectors,
    TooLongError,
    stack_means,
)
from simllm.scoring.scores import about_truncated
from simllm.scoring.sentences import DividedText, length_factor
from simllm.text_cleaning import SEVERAL_SENTENCES, count_words, divide

# Regular expressions instead of parsers: scores must not depend on the parsers that are installed. Strings
# are matched because they may contain comment marks. Their first use compiles them: most runs need none.
_STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`[^`]*`"
_BLOCK = r"(?P<comment>/\*(?s:.*?)(?:\*/|\Z)|//[^\n]*"
_C_LIKE = rf"{_BLOCK})|{_STRING}"
_PYTHON = rf"(?P<comment>\#[^\n]*)|\"\"\"(?s:.*?)(?:\"\"\"|\Z)|'''(?s:.*?)(?:'''|\Z)|{_STRING}"
_RUBY = rf"(?P<comment>\#[^\n]*|(?ms:^=begin\b.*?(?:^=end\b|\Z)))|{_STRING}"
_PHP = rf"{_BLOCK}|\#(?!\[)[^\n]*)|{_STRING}"
# Without a known language, `#` begins a comment only at the beginning of a line, but not in `#include`.
_OTHER = rf"{_BLOCK}|(?m:^[ \t]*\#(?![a-z])[^\n]*))|{_STRING}"
_COMMENTS = {"python": _PYTHON, "ruby": _RUBY, "php": _PHP} | dict.fromkeys(
    ("java", "javascript", "typescript", "go", "cpp"), _C_LIKE
)
# Only that of the first function; searching again from each `def` would take quadratic time.
_DOCSTRING = (
    r"\A((?>(?s:.*?)\bdef\b)(?s:.*?):[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*+[ \t]*)"
    r"[rRuU]?(?:(\"\"\"|''')(?s:.*?)(?:(?<!\\)\2|\Z)|\"[^\"\n]*\"|'[^'\n]*')[ \t]*(?=\n|\Z)"
)
# Operators are kept where they decide the meaning; those of pointers, types and arrows are no words.
_WORD = (
    r"[^\W\d_a-z]+(?![a-z])|[^\W\d_a-z]?[^\W\d_A-Z]+|\d+(?:\.\d+)?"
    r"|==|!=|<=|>=|&&|\|\||!|(?<=\s)(?:[<>*/%+]|-)=?(?=\s)"
)
LONGEST_CODE = 20_000  # characters; the model reads a few hundred words
# Words of the reference that a summary of several sentences is measured by: those of one sentence. Chosen on
# rated summaries; 10 to 40 agree with people about equally.
REFERENCE_WORDS = 10


def words(code: str, language: str | None = None) -> str:
    """Convert code to lower-case words, without comments, docstring and punctuation.

    Identifiers are split at capital letters and underscores. Words in strings are kept, too.

    Examples:
        >>> words("int maxOf(int a, int b) { return a >= b ? a : b; }  // the maximum", "java")
        'int max of int a int b return a >= b a b'
    """
    code, language = code[:LONGEST_CODE], (language or "").lower()
    if language == "python":
        code = re.sub(_DOCSTRING, r"\1", code, count=1)
    comments = _COMMENTS.get(language, _OTHER)
    code = re.sub(comments, lambda found: " " if found["comment"] else found[0], code)
    return " ".join(re.findall(_WORD, code)).lower()


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
        values: (n,) scores; 0 where code or summary has no words.
        cosines: (n,) cosines of the embeddings of code and summary; equal to `values` without `fits`.
        fits: (n,) probabilities that the summary fits the code; None if the model cannot estimate them.
        empty: Number of pairs in which code or summary has no words.
        truncated: Number of codes and summaries that are longer than the model's longest input.
        warnings: What changes how the scores are read, such as the number of truncated texts.
    """

    values: Floats
    cosines: Floats
    fits: Floats | None
    empty: int
    truncated: int
    warnings: tuple[str, ...] = ()


def _about_languages(pairs: Sequence[CodePair]) -> list[str]:
    """Return a warning about code whose language has no rules for comments, perhaps by a wrong spelling."""
    found = [pair.language for pair in pairs if pair.language and pair.language.lower() not in _COMMENTS]
    if not found:
        return []
    names, known = list_some(dict.fromkeys(found), 3), ", ".join(sorted(_COMMENTS))
    return [f"{len(found)} of {len(pairs)} pairs have an unknown language ({names}); known are {known}"]


_CHUNK = 256  # pairs whose token vectors are in memory at once: 50 MB if all code is long


class CodeReader:
    """Scorer of pairs of code and summary.

    Without a model that reads code, the encoder of summaries reads the words of the code, too.
    """

    def __init__(
        self,
        summaries: SavedModel,
        engine: Engine,
        pooling: str,
        on_long: str = "truncate",
        code: CodeModel | None = None,
        divides: bool = True,
    ) -> None:
        """Prepare the scorer; `engine` holds the encoder of `summaries`.

        `divides` tells whether summaries with several sentences are compared clause by clause.
        """
        self.tokenizer, self.longest = summaries.tokenizer, summaries.config.max_length
        self.pooling, self.on_long = pooling, on_long
        self.model, self.divides = code, divides
        self.code_engine, self.engine = engine.beside(code.networks) if code else (engine, engine)

    @property
    def signature(self) -> str:
        """Hash of the model that reads code; `shared` if the encoder of summaries reads it."""
        return self.model.hash if self.model else "shared"

    def score(self, pairs: Sequence[CodePair]) -> FitScores:
        """Score n pairs; InputError for a long text if `on_long` is `error`.

        Of a summary with several sentences, the clauses are compared with the code one by one. The cosine is
        the mean over them, weighted by words, times the length factor of scores against references; `fits` is
        that of the clause that fits worst.
        """
        return self.score_groups([pairs])[0]

    def score_groups(self, groups: Sequence[Sequence[CodePair]]) -> list[FitScores]:
        """Score several lists of pairs in one run, as `score` does; each list has its own counts."""
        pairs = [pair for group in groups for pair in group]
        means, empty, long = np.zeros(len(pairs)), np.zeros(len(pairs), bool), np.zeros(len(pairs), int)
        fits = np.zeros(len(pairs)) if self.model else None
        for start in range(0, len(pairs), _CHUNK):
            part = pairs[start : start + _CHUNK]
            divided = [self._divide(pair.summary) for pair in part]
            clauses = [own.texts for own in divided]
            factors = [length_factor(own.length, REFERENCE_WORDS) for own in divided]
            owners = np.repeat(np.arange(len(part)), [len(own) for own in clauses])
            numbers = np.arange(start + 1, start + 1 + len(part))
            code = self._tokenize("code", numbers, [words(pair.code, pair.language) for pair in part])
            texts = [clause for own in clauses for clause in own]
            summaries = self._tokenize("candidate", numbers[owners], texts)
            cosines, logits = self._compare(Tokenized([code.inputs[i] for i in owners]), summaries)
            counts = np.array([max(1, count_words(clause)) for own in clauses for clause in own], float)
            counts[summaries.empty | code.empty[owners]] = 0
            totals = np.bincount(owners, counts, len(part))
            sums = np.bincount(owners, counts * cosines, len(part))
            unpriced = sums / np.maximum(totals, 1)
            means[start : start + _CHUNK] = np.where(unpriced > 0, factors * unpriced, unpriced)
            if fits is not None and self.model and logits is not None:
                probabilities = self.model.info.fits.probabilities(logits, cosines)
                lowest = np.ones(len(part))
                np.minimum.at(lowest, owners[counts > 0], probabilities[counts > 0])
                fits[start : start + _CHUNK] = np.where(totals > 0, lowest, 0)
            empty[start : start + _CHUNK] = totals == 0
            for indices in (code.long, np.unique(owners[summaries.long])):
                long[start : start + _CHUNK][indices] += 1
        ends = np.cumsum([len(group) for group in groups]).tolist()
        parts = [slice(end - len(group), end) for group, end in zip(groups, ends, strict=True)]
        scores = [
            self._counted(means[rows], None if fits is None else fits[rows], empty[rows], long[rows])
            for rows in parts
        ]
        return [
            replace(own, warnings=(*own.warnings, *_about_languages(group)))
            for own, group in zip(scores, groups, strict=True)
        ]

    def _counted(
        self, cosines: Floats, fits: Floats | None, is_empty: NDArray[np.bool_], long: NDArray[np.int_]
    ) -> FitScores:
        """Return the scores of n pairs with their counts; `long` has the long texts of each pair: 0 to 2."""
        values = cosines
        if self.model and fits is not None:
            _, *weights = self.model.info.both
            values = np.average([cosines, fits], axis=0, weights=weights)
        empty, truncated = int(is_empty.sum()), int(long.sum())
        found = about_truncated(2 * len(values), truncated, self.longest, self.on_long)
        if empty:
            found += [f"{empty} of {len(values)} pairs have a code or summary without words; they score 0"]
        return FitScores(values, cosines, fits, empty, truncated, tuple(found))

    def _divide(self, summary: str) -> DividedText:
        """Divide a summary with several sentences into its clauses; others stay whole, with length 0."""
        if self.divides and SEVERAL_SENTENCES.search(summary):
            divided = divide(summary)
            if divided.sentences > 1 and divided.texts:
                return DividedText(divided.texts, divided.words)
        return DividedText((summary,), 0)

    def combine(self, by_reference: Floats, by_code: FitScores) -> Floats:
        """Combine the (n,) scores against references with the scores of the same candidates against code."""
        weight = self.model.info.both[0] if self.model else 0.5
        return weight * by_reference + (1 - weight) * by_code.values

    def _tokenize(self, name: str, numbers: NDArray[np.int_], texts: Sequence[str]) -> Tokenized:
        """Tokenize texts; the name of one that is too long, such as "code 3", has the number of its pair."""
        try:
            return embedding.tokenize(self.tokenizer, texts, self.longest, self.on_long)
        except TooLongError as error:
            raise InputError(f"{name} {numbers[error.index]}: {error}") from None

    def _compare(self, code: Tokenized, summaries: Tokenized) -> tuple[Floats, Floats | None]:
        """Compute the (n,) cosines of code and summaries, and the (n,) logits of the head if there is one."""
        sides = (code, self.code_engine), (summaries, self.engine)
        if not self.model:
            return cosine(*(embedding.embed(engine, texts, self.pooling) for texts, engine in sides)), None
        embeddings, vectors = [], []
        for texts, engine in sides:
            read = embedding.run_encoder(engine, texts, self._reduce)
            rows = {ids: row for ids, (row, _) in read.items()}
            embeddings.append(stack_means(rows, texts.inputs))
            vectors.append([[read[ids][1] for ids in windows] for windows in texts.inputs])
        cosines = cosine(embeddings[0], self.model.map_summaries(embeddings[1]))
        return cosines, embedding.run_head(self.engine, vectors[0], vectors[1], cosines)[:, 0]

    def _reduce(self, encoded: EncodedTexts) -> Iterable[tuple[Floats32, TokenVectors]]:
        """Return each text's (D,) embedding and its vectors for the head."""
        return zip(encoded.pooled(self.pooling), encoded.projected(), strict=True)
