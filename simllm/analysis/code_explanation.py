"""Explanation of a score against code: statements without support, identifiers that support the others."""

from __future__ import annotations

import keyword
import re
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from simllm.metric import SimLLM
from simllm.scoring.code import CodePair, words
from simllm.text_cleaning import clean, divide

_IDENTIFIER = re.compile(r"[^\W\d]\w+")
_KEYWORDS = frozenset(keyword.kwlist) | frozenset(
    "abstract boolean byte case catch char class const default defer do double end enum export extends final "
    "float foreach func function int interface let long module new nil null package private protected public "
    "require self short static string struct super switch this throw throws true type typeof undefined "
    "unless until use var void when while".split()
)
_SUPPORTS = 0.4  # similarity of an identifier and a statement
_SAYS = 0.75  # similarity of an identifier that says the same as a statement, such as the name of a call
_MOST = 3  # identifiers that are named for a statement


@dataclass(frozen=True)
class Statement:
    """A clause of the summary.

    Attributes:
        score: Its score against the whole code.
        fits: The probability that it fits the code; None if the model cannot estimate it.
        supported: Whether the code supports it; None if the model cannot estimate the probability.
        identifiers: Names in the code that support it, the most similar first.
    """

    text: str
    score: float
    fits: float | None
    supported: bool | None
    identifiers: tuple[str, ...]


@dataclass(frozen=True)
class CodeExplanation:
    """The score of a summary against code, with its statements."""

    score: float
    fits: float | None
    statements: tuple[Statement, ...]
    signature: str


def explain_against_code(metric: SimLLM, summary: str, code: str, language: str | None) -> CodeExplanation:
    """Score a summary and each of its clauses against code, and find the identifiers that support them.

    Raises InputError if the summary or the code has no words.
    """
    for name, cleaned in (("summary", clean(summary)), ("code", words(code, language))):
        if not cleaned:
            raise InputError(f"explain: the {name} is empty after cleaning; expected words")
    texts, model = divide(summary).texts or (summary,), metric.code_reader.model
    if not model:  # how low a score is too low was measured with such a model only
        message = "no model that reads code belongs to this model: statements without support are not marked"
        warnings.warn(message, stacklevel=2)
    whole = metric.code_reader.score([CodePair(code, summary, language)])
    for message in whole.warnings:
        warnings.warn(message, stacklevel=2)
    scores = metric.code_reader.score([CodePair(code, text, language) for text in texts])
    fits: list[float | None] = [None] * len(texts) if scores.fits is None else scores.fits.tolist()
    names = _identifiers(code, language)
    cosines, contained = _compare(metric, texts, [words(name) for name in names])
    statements = []
    for i, (text, value, fit) in enumerate(zip(texts, scores.values.tolist(), fits, strict=True)):
        supported = None
        if model and fit is not None:
            supported = bool(fit >= model.info.unsupported or (cosines[i] >= _SAYS).any())
        row = np.where(contained[i], 1, cosines[i])
        best = sorted(range(len(names)), key=lambda i, row=row: -row[i])[:_MOST]  # type: ignore[misc]
        near = tuple(names[i] for i in best if supported is not False and row[i] >= _SUPPORTS)
        statements.append(Statement(text, value, fit, supported, near))
    fit = None if whole.fits is None else float(whole.fits[0])
    return CodeExplanation(float(whole.values[0]), fit, tuple(statements), metric.signature_against("code"))


def _identifiers(code: str, language: str | None) -> list[str]:
    """Return the names in the code in their order, without keywords and names that occur in comments only."""
    read = f" {words(code, language)} "
    found = dict.fromkeys(name for name in _IDENTIFIER.findall(code) if name not in _KEYWORDS)
    return [name for name in found if words(name) and f" {words(name)} " in read]


def _compare(
    metric: SimLLM, texts: tuple[str, ...], names: list[str]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the (n, m) cosines between n texts and m names, and whether a name stands in a text."""
    embedded = metric.embed([*texts, *names])
    embedded = embedded / np.maximum(np.linalg.norm(embedded, axis=1, keepdims=True), 1e-9)
    said = [f" {' '.join(re.findall(r'[a-z0-9]+', text.lower()))} " for text in texts]
    contained = np.array([[f" {name} " in text for name in names] for text in said], bool)
    return embedded[: len(texts)] @ embedded[len(texts) :].T, contained
