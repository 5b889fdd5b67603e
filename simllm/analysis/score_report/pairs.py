"""The scored pairs of a report: flags, word overlap, explained pairs, and the choice of those to show."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simllm.analysis.explanation import explain_clauses, explain_pairs
from simllm.array_types import Floats
from simllm.metric import SimLLM
from simllm.metrics import registry
from simllm.model.config import ScoreScale
from simllm.scoring.scores import SIMILAR
from simllm.text_cleaning import clean, is_boilerplate

LONGEST_SHOWN = 2_000  # characters of a text that the page shows
# JavaScript's white space: the script of the page splits texts there.
_SPACE = re.compile(r"[\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+")
_CHUNK = 10_000  # texts that are tokenized at once
LONGEST_EXPLAINED = 30  # words of a text that is explained; the cost grows with the number of words
_LONGEST_TOKENS = 64  # guards against words of very many tokens
MOST = 5_000  # pairs that a page shows; more make it slow
_OF_A_KIND = 500  # pairs with the lowest scores, as many with the highest scores, and so on
_SEED = 12345


def is_cut(scored: ScoredPairs, i: int) -> bool:
    """Return whether a text of pair `i` has more characters than the score report shows (2,000)."""
    return any(
        len(texts[i]) > LONGEST_SHOWN for texts in [*scored.texts, *([scored.code] if scored.code else [])]
    )


def cut(text: str) -> str:
    """Cut a text after 2,000 characters; append the full length to a text that was cut."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]} … ({len(text):,} characters)"


def cut_id(value: Any) -> Any:
    """Return a pair's id as the page shows it; a long id that is not a string becomes JSON and is cut."""
    exact = _exact(value)
    text = exact if isinstance(exact, str) else json.dumps(exact)
    return cut(text) if len(text) > LONGEST_SHOWN else exact


def _exact(value: Any) -> Any:
    """Replace whole numbers from 2^53 by text, because JavaScript would round them."""
    if isinstance(value, list):
        return [_exact(item) for item in value]
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    return str(value) if isinstance(value, int) and abs(value) >= 2**53 else value


def word_overlap(candidates: Sequence[str], references: Sequence[str]) -> Floats:
    """Compute the (n,) Jaccard indices of the words of n candidates and their references, from 0 to 1.

    Upper case and punctuation are ignored. Two texts without words have the index 1.
    """
    pairs = [(_words(a), _words(b)) for a, b in zip(candidates, references, strict=True)]
    return np.array([len(a & b) / len(a | b) if a | b else 1.0 for a, b in pairs], float)


def disagreement(overlap: Floats, scores: Floats) -> Floats:
    """Compute the rank of n pairs by word overlap minus their rank by score (higher is better), divided by n.

    A value near 1 means many words in common but a bad score; near -1 means few words but a good score.
    """
    return _rank(overlap) - _rank(scores)


def _rank(values: Floats) -> Floats:
    """Return the (n,) ranks of n values, divided by n; equal values get their mean rank."""
    from scipy.stats import rankdata

    shares: Floats = rankdata(values) / len(values)
    return shares


def _words(text: str) -> set[str]:
    """Return the different words of a text, in lower case and without punctuation."""
    return {_normal(part) for part in _SPACE.split(text)} - {""}


# The same words return all the time, and looking up each character's category is slow.
@lru_cache(maxsize=100_000)
def _normal(word: str) -> str:
    """Convert a word to lower case and keep only its letters, combining marks and digits."""
    return "".join(character for character in word.lower() if unicodedata.category(character)[0] in "LMN")


def find_long_texts(metrics: Mapping[str, SimLLM], texts: Sequence[Sequence[str]]) -> list[int]:
    """Find the indices of pairs with a text that is longer than the longest input of a metric's model.

    `texts` are columns of n texts: the references, and the candidates of each system.
    """
    found: set[int] = set()
    references, *systems = texts
    # With several systems, all columns have the same metric, which needs to read the texts only once.
    for metric in {id(metric): metric for metric in metrics.values()}.values():
        for column in systems:
            for start in range(0, len(column), _CHUNK):
                pairs = slice(start, start + _CHUNK)
                long = metric.tokenize_pairs([*column[pairs], *references[pairs]]).long
                found.update(start + i % len(column[pairs]) for i in long)
    return sorted(found)


def _any(columns: Sequence[ArrayLike]) -> NDArray[np.bool_]:
    """Return (n,) bool, true where any of several columns of n values is true."""
    flags: NDArray[np.bool_] = np.logical_or.reduce(np.array(columns))
    return flags


@dataclass(frozen=True)
class ScoredPairs:
    """Scored text pairs: n references, the candidates of one or several systems, and scores.

    Attributes:
        references: n references. If a candidate has several references, they are joined by " / ". Without
            references (`has_references`), they are the words of the code.
        candidates: The n candidates of each system, by its name. A single system has the name "".
        scores: The (n,) scores of each column.
        same: The (n,) probabilities of the same meaning of each column that has them.
        changed: (n,) bool for each column in `same`, true for a changed pair.
        truncated: Number of texts that are longer than the model's longest input.
        calibration: The map from scores to percentiles; None if there is none.
        ids: n identifiers of the pairs; None if the user named no field with ids.
        groups: The n values of each field.
        changed_by: The changing words of each explained pair: `changed_by[column][i]`.
        long_texts: Indices of the pairs with a text that is longer than the model's longest input; empty if
            they were not searched for.
        divided: Indices of the pairs of several sentences; empty if they were not searched for.
        code: The n pieces of code that the candidates describe; None if they were not scored against code.
        has_references: Whether there are references; False if only code was read.
        clause_notes: For pairs of several sentences, the clauses with a note, by note; {} for pairs without
            notes. They are known for pairs of one system only, and for at most 200.
    """

    references: Sequence[str]
    candidates: Mapping[str, Sequence[str]]
    scores: Mapping[str, Floats]
    same: Mapping[str, Floats] = field(default_factory=dict)
    changed: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    truncated: int = 0
    signature: str = ""
    calibration: ScoreScale | None = None
    ids: Sequence[Any] | None = None
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    changed_by: Mapping[str, Mapping[int, Sequence[str]]] = field(default_factory=dict)
    long_texts: Sequence[int] = ()
    divided: Sequence[int] = ()
    clause_notes: Mapping[int, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    code: Sequence[str] | None = None
    has_references: bool = True

    def __len__(self) -> int:
        return len(self.references)

    @property
    def has_systems(self) -> bool:
        """Whether there are several systems; the columns are then systems, and otherwise metrics."""
        return len(self.candidates) > 1

    @cached_property
    def main(self) -> Floats:
        """(n,) main scores: those of the first metric, or the mean over several systems."""
        columns = list(self.scores.values())
        return np.mean(columns, axis=0) if self.has_systems else columns[0]

    @property
    def lower_is_better(self) -> bool:
        """Whether lower scores by the first metric are better, as for a metric of the size of an edit."""
        # Several systems are scored by simllm's learned metric, for which higher is better.
        return not self.has_systems and registry.lower_is_better(next(iter(self.scores)))

    @property
    def ranking(self) -> Floats:
        """(n,) main scores for ranking the pairs, with NaN replaced by the median."""
        known = self.main[~np.isnan(self.main)]
        return np.nan_to_num(self.main, nan=float(np.median(known)) if len(known) else 0.0)

    @property
    def texts(self) -> list[Sequence[str]]:
        """The texts as a list of columns: the n references, then the n candidates of each system."""
        return [self.references, *self.candidates.values()]

    @cached_property
    def overlap(self) -> Floats:
        """(n,) word overlaps (Jaccard indices) of candidate and reference; the mean over several systems."""
        return np.mean([word_overlap(own, self.references) for own in self.candidates.values()], axis=0)

    @cached_property
    def surprise(self) -> Floats:
        """(n,) disagreements of word overlap and score, from -1 to 1; see `disagreement`."""
        return disagreement(self.overlap, -self.ranking if self.lower_is_better else self.ranking)

    @cached_property
    def empty(self) -> NDArray[np.bool_]:
        """(n,) bool, true for a pair if one of its texts is empty after cleaning."""
        return _any([[not clean(text) for text in column] for column in self.texts])

    @cached_property
    def boilerplate(self) -> NDArray[np.bool_]:
        """(n,) bool, true for a pair whose reference says nothing about the code."""
        return np.array([self.has_references and is_boilerplate(text) for text in self.references], bool)

    @cached_property
    def long(self) -> NDArray[np.bool_]:
        """(n,) bool, true for the pairs in `long_texts`."""
        return np.isin(np.arange(len(self)), self.long_texts)

    @cached_property
    def worst_good_score(self) -> float:
        """The threshold between good and bad scores; a score equal to the threshold is good.

        It serves to list pairs that share many words but have a bad score, and the reverse.
        """
        # Only the learned metric has a calibration or probabilities of the same meaning. Other metrics have
        # scales of their own, on which no score is known to be good.
        is_learned = self.calibration is not None or next(iter(self.scores)) in self.same
        return SIMILAR if is_learned else float(np.median(self.ranking))

    @cached_property
    def unrelated_below(self) -> float | None:
        """The score below which 95% of random pairs of texts score; None without a calibration."""
        if self.calibration is None:
            return None
        scores = self.calibration.random  # at evenly spaced percentiles
        return float(np.interp(95, np.linspace(0, 100, len(scores)), scores))

    @cached_property
    def single(self) -> NDArray[np.bool_]:
        """(n,) bool, true for a pair of single sentences; scores of others follow another scale."""
        return ~np.isin(np.arange(len(self)), self.divided)

    @cached_property
    def any_unrelated(self) -> NDArray[np.bool_]:
        """(n,) bool, true for a single pair if one of its candidates scores below `unrelated_below`."""
        bar = -np.inf if self.unrelated_below is None else self.unrelated_below
        below = _any(
            [values < bar for values in self.scores.values()] if self.has_systems else [self.main < bar]
        )
        return below & self.single

    @cached_property
    def any_changed(self) -> NDArray[np.bool_]:
        """(n,) bool, true for a pair that is changed in any column."""
        return _any([np.zeros(len(self), bool), *self.changed.values()])  # there may be no columns


def explain_changed_pairs(
    metrics: Mapping[str, SimLLM], scored: ScoredPairs
) -> dict[str, dict[int, list[str]]]:
    """Find the changing words of the 10 to 25 changed pairs with the highest scores: `result[column][i]`.

    A pair that is changed in two columns counts as two pairs. Pairs with a text of more than 30 words or 64
    tokens are skipped, and so are columns of metrics that cannot be explained word by word.
    """
    usable = {
        name: metric
        for name, metric in metrics.items()
        if name in scored.changed and (metric.pooling, metric.similarity) == ("mean", "cosine")
    }
    found: dict[str, dict[int, list[str]]] = {name: {} for name in usable}
    flagged = np.flatnonzero(scored.any_changed)
    chosen = [
        (name, i)
        for i in flagged[np.argsort(-scored.ranking[flagged], kind="stable")].tolist()
        for name in usable
        if scored.changed[name][i]
        and not usable[name].divides(*_texts(scored, name, i))
        and all(len(text.split()) <= LONGEST_EXPLAINED for text in _texts(scored, name, i))
    ][: number_of_explained(len(scored))]
    for name, metric in usable.items():
        texts = {i: _texts(scored, name, i) for column, i in chosen if column == name}
        # Only the chosen pairs are tokenized: the count of words is cheap and has left out nearly all long
        # texts.
        inputs = metric.tokenize([text for pair in texts.values() for text in pair]).inputs
        short = [len(windows) == 1 and len(windows[0]) <= _LONGEST_TOKENS for windows in inputs]
        texts = {i: pair for k, (i, pair) in enumerate(texts.items()) if all(short[2 * k : 2 * k + 2])}
        if texts:
            explanations = explain_pairs(metric, list(texts.values()))
            found[name] = {i: own.changing_words for i, own in zip(texts, explanations, strict=True)}
    return found


_MOST_DIVIDED = 200  # pairs of several sentences that are read once more for their notes


def find_divided_pairs(metrics: Mapping[str, SimLLM], scored: ScoredPairs) -> list[int]:
    """Find the indices of the pairs that the first learned metric compares clause by clause."""
    metric = next(iter(metrics.values()))
    references, *systems = scored.texts
    return [i for i in range(len(scored)) if any(metric.divides(own[i], references[i]) for own in systems)]


def find_clause_notes(metrics: Mapping[str, SimLLM], scored: ScoredPairs) -> dict[int, dict[str, list[str]]]:
    """Find the clauses with notes, of the first learned metric, in the shown pairs of several sentences.

    Of more than 200 such pairs, those with the lowest scores are read.
    """
    if scored.has_systems:
        return {}
    metric, candidates = next(iter(metrics.values())), scored.texts[1]
    shown = np.intersect1d(choose_pairs(scored), scored.divided).astype(int).tolist()
    lowest = sorted(shown, key=lambda i: scored.ranking[i])[:_MOST_DIVIDED]
    found: dict[int, dict[str, list[str]]] = {}
    for i in sorted(lowest):
        explanation = explain_clauses(metric, candidates[i], scored.references[i])
        notes: dict[str, list[str]] = {}
        if explanation:
            for clause in (*explanation.candidate, *explanation.reference):
                if clause.note:
                    notes.setdefault(clause.note, []).append(clause.text)
            found[i] = notes
    return found


def number_of_explained(n: int) -> int:
    """Return how many pairs of a report with n pairs are explained: n / 200, but from 10 to 25."""
    # Few, because explaining one pair takes about as long as scoring 30 pairs. The report's table shows 25
    # pairs at a time.
    return min(max(10, n // 200), 25)


def _texts(scored: ScoredPairs, name: str, i: int) -> tuple[str, str]:
    """Return the candidate, from the system `name`, and the reference of pair `i`."""
    return scored.candidates[name if scored.has_systems else ""][i], scored.references[i]


def choose_pairs(scored: ScoredPairs) -> NDArray[np.int64]:
    """Choose at most 5,000 pairs to show: up to 500 of each kind of extreme pair, the rest at random.

    The returned indices are increasing. The kinds are the lowest and the highest scores, the most and the
    fewest common words for their score, changed pairs, and the largest differences between systems.
    """
    n = len(scored)
    if n <= MOST:
        return np.arange(n)
    main = scored.ranking
    orders = [np.argsort(main), np.argsort(-main), np.argsort(scored.surprise), np.argsort(-scored.surprise)]
    changed = np.flatnonzero(scored.any_changed)
    # Of many changed pairs, those with the highest scores mislead most.
    orders.append(changed[np.argsort(-main[changed])])
    if scored.has_systems:
        gaps = [abs(a - b) for a, b in combinations(scored.scores.values(), 2)]
        orders.append(np.argsort(-np.max(gaps, axis=0)))
    chosen = np.unique(np.concatenate([order[:_OF_A_KIND] for order in orders]))
    rest = np.setdiff1d(np.arange(n), chosen)
    drawn = np.random.default_rng(_SEED).choice(rest, MOST - len(chosen), replace=False)
    return np.sort(np.concatenate([chosen, drawn]))


def describe_choice(scored: ScoredPairs) -> str:
    """Return the report's note about its table: which text pairs the table shows."""
    if len(scored) <= MOST:
        return "The only pair is here." if len(scored) == 1 else f"All {len(scored):,} pairs are here."
    systems = ", the largest differences between systems" if scored.has_systems else ""
    return (
        f"The table holds {MOST:,} of the {len(scored):,} pairs: {_OF_A_KIND} each with the lowest scores, "
        "the highest scores, the most and the fewest common words for their score, a changed "
        f"meaning{systems}, and others drawn at random. All means, intervals and figures are "
        "those of all pairs."
    )
