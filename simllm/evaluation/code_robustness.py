"""Robustness of scores against code: how the score of a summary changes when the code changes.

This is a metamorphic test of metrics that need no reference. The code of a function is changed, and its
summary, which stays as it is, is scored against the new code:

- A *rewriting* (`simllm.perturb.code`) keeps what the code does, so that the score should stay.
- A *mutant* has one deliberate mistake, so that the score should fall, if the metric reads what code does.
- *Other code* is that of another function: the summary does not belong to it at all.

Changes are told in *spreads*: the standard deviation of the scores of all functions with their own code.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.metrics.interface import Example
from simllm.perturb.code import DEFAULT_RULES, rewrite
from simllm.perturb.code.names import seeded, synonyms
from simllm.perturb.code.proof.mutants import mutants_by_kind
from simllm.perturb.code.proof.verdicts import ProofCase
from simllm.perturb.code.rules import LANGUAGES
from simllm.scoring.code import words
from simllm.stats.classification import area_under_roc
from simllm.stats.resampling import SEED, interval, resampled_means

REWRITING, MUTANT, OTHER = "rewriting", "mutant", "other code"
# The name of the function stays: it is a part of what the code says to others.
_RULES = tuple(rule for rule in DEFAULT_RULES if rule != "rename-function")
_ROUNDING = 1e-5  # scores of the same code may differ by so much
FEW = 30  # functions


def rewrite_function(code: str, language: str, seed: int) -> str:
    """Rewrite a function without changing its name and what it does; InputError if it is not valid alone."""
    return rewrite(code, language, _RULES, seeded(synonyms, seed), seed=seed).text


@dataclass(frozen=True)
class CodeEdits:
    """n changed versions of the code of m functions.

    Attributes:
        functions: The m functions: the summary as the candidate, and the code as the source.
        function: (n,) indices: for each version, the index of its function.
        codes: The code of the n versions, and `languages` their programming languages.
        kinds: `REWRITING`, `OTHER`, or the kind of a mutant, such as "number".
        left_out: Why functions were left out, and how many.
    """

    functions: list[Example]
    function: NDArray[np.int64]
    codes: list[str]
    languages: list[str | None]
    kinds: list[str]
    left_out: Counter[str]

    @property
    def examples(self) -> list[Example]:
        """The m functions and then the n versions; metrics of two texts get words of code as reference."""
        own = [(one, one.source or "", one.language) for one in self.functions]
        versions = zip(self.function, self.codes, self.languages, strict=True)
        own += [(self.functions[i], code, language) for i, code, language in versions]
        return [Example(one.candidate, words(code, language), code, language) for one, code, language in own]


def make_code_edits(functions: Sequence[Example], seed: int, mutants: int | None = None) -> CodeEdits:
    """Rewrite the code of each function, and make its mutants: one of each kind, or `mutants` at random.

    Functions in other languages than Java and Python are left out, and so are those that cannot be changed.
    InputError: fewer than two functions are left, or none of them has a mutant.
    """
    if seed < 0:
        raise InputError(f"seed {seed}: expected 0 or a positive number")
    if mutants is not None and mutants < 1:
        raise InputError(f"mutants {mutants}: expected 1 or more")
    kept, edits, left_out = list[Example](), list[tuple[int, str, str, str | None]](), Counter[str]()
    for function in functions:
        code, language = function.source or "", (function.language or "").lower()
        if language not in LANGUAGES:
            left_out["not in Java or Python"] += 1
            continue
        own = seed + zlib.crc32(code.encode("utf-8", "replace"))
        try:
            rewritten = rewrite_function(code, language, own)
        except InputError:
            left_out["not valid alone"] += 1
            continue
        made = mutants_by_kind(ProofCase(str(own), language, code, code), own)
        if mutants is not None and mutants < len(made):
            chosen = np.random.default_rng(own).permutation(list(made))[:mutants].tolist()
            made = {kind: made[kind] for kind in sorted(chosen)}
        if rewritten != code:
            made = {REWRITING: rewritten, **made}
        if not made:
            left_out["without anything to change"] += 1
            continue
        edits += [(len(kept), kind, text, language) for kind, text in made.items()]
        kept.append(function)
    kinds = {kind for _, kind, *_ in edits}
    if len(kept) < 2 or REWRITING not in kinds or len(kinds) < 2:
        raise InputError(
            f"of {len(functions)} functions, {len(kept)} can be changed; expected 2 or more in Java or "
            "Python, some that can be rewritten and some with mutants"
        )
    m = len(kept)
    # Half the list away: neighbours may be about the same class.
    others = [kept[(i + m // 2) % m] for i in range(m)]
    edits += [(i, OTHER, other.source or "", other.language) for i, other in enumerate(others)]
    indices, names, codes, languages = zip(*edits, strict=True)
    return CodeEdits(kept, np.array(indices), list(codes), list(languages), list(names), left_out)


@dataclass(frozen=True)
class Figure:
    """A figure of a metric about one kind of changed versions, with its 95% bootstrap interval.

    In means, each function counts alike. The interval is NaN for fewer than six functions, and for an AUC.

    Attributes:
        edit: `REWRITING`, `MUTANT` (mutants of all kinds), a kind of mutant, or `OTHER`.
        count: The number of changed versions.
        name: "move", the mean absolute change of the score, in spreads; "drop", the mean fall of the score,
            in spreads; "falls", the share of versions with a lower score, where ties count half; or "auc",
            the probability that the score falls more for a mutant than for a rewriting.
    """

    edit: str
    count: int
    name: str
    value: float
    low: float = np.nan
    high: float = np.nan


@dataclass(frozen=True)
class CodeRobustness:
    """The reactions of a metric to each kind of change.

    Attributes:
        figures: About rewritings, all mutants, other code, and mutants by kind.
        spread: The standard deviation of the scores of all functions.
        unscored: The number of functions and versions without a score, such as those for which a judge gave
            no readable reply.
    """

    figures: list[Figure]
    spread: float
    unscored: int

    def value(self, edit: str, name: str) -> float:
        """Return the value of a figure; NaN if there is none."""
        return next((one.value for one in self.figures if (one.edit, one.name) == (edit, name)), np.nan)


def measure_code_robustness(scores: Floats, edits: CodeEdits) -> CodeRobustness:
    """Test how scores react to changes of the code.

    `scores` are a metric's (m + n) scores of `edits.examples`, NaN where there is none.
    """
    m = len(edits.functions)
    known = scores[:m][~np.isnan(scores[:m])]
    spread = float(known.std()) if len(known) else np.nan
    deltas = scores[m:] - scores[:m][edits.function]
    kinds, scored = np.array(edits.kinds), ~np.isnan(deltas)
    is_mutant = ~np.isin(kinds, [REWRITING, OTHER])
    chosen = {REWRITING: kinds == REWRITING, MUTANT: is_mutant, OTHER: kinds == OTHER}
    chosen |= {kind: kinds == kind for kind in sorted(set(kinds[is_mutant].tolist()))}
    chosen = {edit: which & scored for edit, which in chosen.items()}
    # Scores that differ by rounding are ties.
    falls = (1 - np.sign(np.where(np.abs(deltas) < _ROUNDING, 0, deltas))) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        moves = deltas / (spread if spread > 0 else np.nan)
    values = {"move": np.abs(moves), "falls": falls, "drop": -moves}
    names = {REWRITING: ("move",), MUTANT: ("falls", "drop"), OTHER: ("falls", "drop")}
    figures = [
        Figure(edit, int(which.sum()), name, *_mean(values[name][which], edits.function[which]))
        for edit, which in chosen.items()
        for name in names.get(edit, ("falls",))
    ]
    sides = deltas[chosen[REWRITING]], deltas[chosen[MUTANT]]
    if len(sides[0]) and len(sides[1]):
        figures.insert(3, Figure(MUTANT, len(sides[1]), "auc", area_under_roc(*sides)))
    return CodeRobustness(figures, spread, int(np.isnan(scores).sum()))


def _mean(values: Floats, of: NDArray[np.int64]) -> tuple[float, float, float]:
    """Compute the mean of (n,) values over functions, and its interval.

    Versions of the same function are not independent.
    """
    if not len(values) or np.isnan(values).any():
        return np.nan, np.nan, np.nan
    _, places = np.unique(of, return_inverse=True)
    means = np.bincount(places, values) / np.bincount(places)
    drawn = resampled_means(means[None], np.random.default_rng(SEED))
    return float(means.mean()), *interval(drawn[:, 0], len(means))
