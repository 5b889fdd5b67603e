"""The class `CodeMetric` for all metrics for code, and an adapter (a function) for each kind of metric.

Scores are computed in three steps, each by a function:

1. The adapter takes the argument that the user wrote after `=`, such as "multiset" in `lemod=multiset`.
   Adapters of metrics without argument ignore it. The adapter returns the function for step 2.
2. A `Prepare` takes all examples, because some metrics first count n-grams in them. It returns the function
   for step 3.
3. An `ExampleScore` takes one example, and returns its score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import simllm
from simllm.array_types import Floats
from simllm.code.languages.language import find_language
from simllm.errors import InputError
from simllm.metrics.code import sheikhaei, similarity
from simllm.metrics.code.built_in import AS_PUBLISHED, CODE_METRICS, FILE, NODES, PUBLISHED
from simllm.metrics.code.codebleu import code_bleu
from simllm.metrics.code.crystalbleu import (
    check_languages,
    crystal_bleu,
    load_shared,
    shared_of_references,
    warn_if_few,
)
from simllm.metrics.code.patch_size import relative_patch_size, relative_patch_size_ratio
from simllm.metrics.code.similarity import (
    LARGEST_TREE,
    bleu_of_tokens,
    chrf_of_code,
    compare_edits,
    compare_whole,
    indel_similarity,
    levenshtein_similarity,
    syntax_tree_similarity,
)
from simllm.metrics.interface import Example, candidates_and_references

ExampleScore = Callable[[Example], float]
Prepare = Callable[[Sequence[Example]], ExampleScore]


@dataclass(frozen=True)
class CodeScores:
    """The scores of n examples.

    Attributes:
        values: (n,) scores; NaN where an example has no score.
        signature: Text that names everything that can change a score.
    """

    values: Floats
    signature: str

    @property
    def unscored(self) -> int:
        """Number of examples without a score, such as those that take too long to parse."""
        return int(np.isnan(self.values).sum())

    @property
    def mean(self) -> float:
        """Mean of the scores without NaN; NaN if no example has a score."""
        return float(np.nanmean(self.values)) if self.unscored < len(self.values) else float("nan")


@dataclass(frozen=True)
class CodeMetric:
    """A metric for code, or for an edit of code; its name includes the argument: "lemod=multiset"."""

    name: str
    prepare: Prepare
    needs_source: bool

    @property
    def signature(self) -> str:
        """The metric and the version of simllm."""
        return f"{self.name}|version:{simllm.__version__}"

    def score(self, examples: Sequence[Example]) -> CodeScores:
        """Score n examples; each must have a supported language, and a source if the metric needs one."""
        candidates_and_references(examples)  # for its TypeError
        for index, example in enumerate(examples):
            if example.language is None:
                raise InputError(f"examples[{index}]: the metric {self.name} needs a language")
            if self.needs_source and example.source is None:
                raise InputError(f"examples[{index}]: the metric {self.name} needs a source")
        # An unsupported language is an error before the first score, which may take long.
        for language in {example.language for example in examples if example.language is not None}:
            find_language(language)
        score = self.prepare(examples)
        return CodeScores(np.array([_or_nan(score, one) for one in examples], np.float64), self.signature)


def _or_nan(score: ExampleScore, example: Example) -> float:
    """Score an example; NaN if parsing takes too long, so that the others keep their scores."""
    try:
        return score(example)
    except TimeoutError:
        return math.nan


def load(name: str) -> CodeMetric:
    """Load a metric for code by its name, such as "lemod", "lemod=multiset" or "crystalbleu=FILE"."""
    kind, _, argument = name.partition("=")
    chosen = CODE_METRICS[kind]
    if argument == AS_PUBLISHED and kind in PUBLISHED:
        return CodeMetric(name, partial(sheikhaei.prepare, kind), chosen.needs_source)
    is_known = chosen.argument in (argument, FILE)
    if chosen.argument == NODES:
        is_known = argument.isdecimal() and int(argument) > 0
    if argument and not is_known:
        expected = f"{kind}={chosen.argument} or {kind}" if chosen.argument else kind
        raise InputError(f"metric {name!r}: name it as {expected}")
    return CodeMetric(name, globals()[chosen.adapter](argument, **chosen.options), chosen.needs_source)


def exact_match(argument: str) -> Prepare:
    """1 if candidate and reference have equal normal forms, otherwise 0."""
    return lambda _: similarity.exact_match


def lemod(argument: str, part: str) -> Prepare:
    """LEMOD: "precision", "recall" or "f1" (`part`) of the candidate's edited lines."""
    return lambda _: partial(similarity.lemod, part=part, multiset=bool(argument))


def token_bleu(argument: str, of_edits: bool) -> Prepare:
    """BLEU-4 over the tokens of the whole code, or only of the edited lines."""
    compare = compare_edits if of_edits else compare_whole
    return lambda _: partial(compare, score=bleu_of_tokens)


def crystalbleu(argument: str, of_edits: bool) -> Prepare:
    """CrystalBLEU of the whole code, or only of the edited lines.

    `argument` is a file with the n-grams to ignore. If it is empty, the most frequent n-grams in the
    references of the examples are ignored.
    """
    compare = compare_edits if of_edits else compare_whole
    # Read before any example, so that a damaged file is found at once.
    given = load_shared(Path(argument)) if argument else None

    def prepare(examples: Sequence[Example]) -> ExampleScore:
        shared = shared_of_references(examples) if given is None else given
        check_languages(shared, examples, argument)
        # A file may have fewer n-grams on purpose.
        if given is None:
            warn_if_few(shared)
        scores = {name: partial(crystal_bleu, shared=ngrams) for name, ngrams in shared.items()}
        return lambda example: compare(example, score=scores[example.language or ""])

    return prepare


def edit_similarity(argument: str) -> Prepare:
    """Edit similarity of the normal forms; "indel" forbids substitutions of characters."""
    score = indel_similarity if argument else levenshtein_similarity
    return lambda _: partial(compare_whole, score=score)


def code_chrf(argument: str) -> Prepare:
    """Character n-gram F-score (chrF) of the normal forms."""
    return lambda _: partial(compare_whole, score=chrf_of_code)


def tree_similarity(argument: str) -> Prepare:
    """Similarity of the syntax trees; `argument` is the largest number of nodes, by default 3000."""
    largest = int(argument or LARGEST_TREE)
    return lambda _: partial(syntax_tree_similarity, largest=largest)


def codebleu(argument: str) -> Prepare:
    """CodeBLEU of the normal forms."""

    def score(example: Example) -> float:
        language = example.language or ""
        return compare_whole(example, lambda a, b: code_bleu(a, b, language).mean)

    return lambda _: score


def patch_size(argument: str, ratio: bool) -> Prepare:
    """RPS, or RPSR if `ratio` is true; `argument` is the largest number of nodes, by default 3000."""
    largest = int(argument or LARGEST_TREE)
    size = relative_patch_size_ratio if ratio else relative_patch_size
    return lambda _: partial(size, largest=largest)
