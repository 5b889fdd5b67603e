"""The class `CodeMetric` for all metrics for code, and a function (adapter) for each kind of metric.

The table `CODE_METRICS` in `built_in_code_metrics.py` names the adapter of each metric. Scores are computed
in three steps, each by a function:

1. The adapter, such as `lemod`, takes the argument that the user wrote after the metric's name, such as
   "multiset" in `lemod=multiset`. It returns the function for step 2.
2. `CodeMetric.prepare` is this function. It takes all examples, because some metrics first count n-grams in
   them. It returns the function for step 3.
3. The last function takes one example, and returns its score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import simllm
from simllm.array_types import Floats
from simllm.code.languages.language_registry import find_language
from simllm.errors import InputError
from simllm.metrics.code import exact_match_and_lemod, sheikhaei_as_published
from simllm.metrics.code.built_in_code_metrics import AS_PUBLISHED, CODE_METRICS, FILE, NODES, PUBLISHED
from simllm.metrics.code.code_chrf import chrf_of_code
from simllm.metrics.code.codebleu import code_bleu
from simllm.metrics.code.crystalbleu import (
    check_languages,
    crystal_bleu,
    load_shared,
    shared_of_references,
    warn_if_few,
)
from simllm.metrics.code.edit_similarity import indel_similarity, levenshtein_similarity
from simllm.metrics.code.relative_patch_size import relative_patch_size, relative_patch_size_ratio
from simllm.metrics.code.token_bleu import bleu_of_tokens
from simllm.metrics.code.tree_similarity import LARGEST_TREE, syntax_tree_similarity
from simllm.metrics.code.whole_or_edited_lines import compare_edits, compare_whole
from simllm.metrics.metric_interface import Example, candidates_and_references

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
        """Number of examples without a score, for example because their syntax tree is too large."""
        return int(np.isnan(self.values).sum())

    @property
    def mean(self) -> float:
        """Mean of the scores; examples without a score are left out. NaN if no example has a score."""
        return float(np.nanmean(self.values)) if self.unscored < len(self.values) else float("nan")


@dataclass(frozen=True)
class CodeMetric:
    """A metric for code, or for an edit of code.

    Attributes:
        name: The name of the metric, with its argument if it has one: "lemod" or "lemod=multiset".
        prepare: A function that takes all examples (candidates with their references). It returns a second
            function, which scores one example. Some metrics need all examples in advance, to find n-grams
            that are frequent in them.
        needs_source: Whether the examples must have a source, which is the code before it was edited.
    """

    name: str
    prepare: Prepare
    needs_source: bool

    @property
    def signature(self) -> str:
        """Text that names everything that can change a score: the metric and the version of simllm."""
        return f"{self.name}|version:{simllm.__version__}"

    def score(self, examples: Sequence[Example]) -> CodeScores:
        """Score n examples of code.

        Args:
            examples: The candidates and references, with their language. If `needs_source` is true, they
                must also have their source, which is the code before it was edited.

        Returns:
            The scores, in the order of the examples.

        Raises:
            InputError: An example has no language, its language is not supported, or it has no source
                although the metric needs one.
        """
        candidates_and_references(examples)  # for its TypeError
        for index, example in enumerate(examples):
            if example.language is None:
                raise InputError(f"examples[{index}]: the metric {self.name} needs a language")
            if self.needs_source and example.source is None:
                raise InputError(f"examples[{index}]: the metric {self.name} needs a source")
        for language in {example.language for example in examples if example.language is not None}:
            find_language(language)
        score = self.prepare(examples)
        return CodeScores(np.array([score(example) for example in examples], np.float64), self.signature)


def load(name: str) -> CodeMetric:
    """Load a metric for code by its name.

    Args:
        name: A key of `CODE_METRICS`, such as "lemod". An argument of the metric may follow, as in
            "lemod=multiset" or "crystalbleu=FILE".

    Raises:
        InputError: The metric does not take this argument, or the argument is a file that cannot be read.
    """
    kind, _, argument = name.partition("=")
    chosen = CODE_METRICS[kind]
    if argument == AS_PUBLISHED and kind in PUBLISHED:
        return CodeMetric(name, partial(sheikhaei_as_published.prepare, kind), chosen.needs_source)
    is_known = chosen.argument in (argument, FILE)
    if chosen.argument == NODES:
        is_known = argument.isdecimal() and int(argument) > 0
    if argument and not is_known:
        expected = f"{kind}={chosen.argument} or {kind}" if chosen.argument else kind
        raise InputError(f"metric {name!r}: name it as {expected}")
    return CodeMetric(name, globals()[chosen.adapter](argument, **chosen.options), chosen.needs_source)


def exact_match(argument: str) -> Prepare:
    """Set up the metric exact match.

    The score of an example is 1 if its candidate and its reference have equal normal forms, otherwise 0. A
    normal form is the code in a uniform layout, without comments, docstrings and imports.

    Args:
        argument: Not used. All functions of this kind have this parameter, because some metrics need it.

    Returns:
        A function that takes all examples (candidates with their references). It returns the score function,
        which takes one example and returns its score.
    """
    return lambda _: exact_match_and_lemod.exact_match


def lemod(argument: str, part: str) -> Prepare:
    """Set up the metric LEMOD.

    LEMOD compares two edits of the same source code, line by line. One edit turns the source into the
    candidate, the other turns it into the reference. An edit consists of deleted and inserted lines.

    Args:
        argument: "multiset" or empty. With "multiset", an inserted line never matches a deleted line, and a
            repeated line counts each time. If it is empty, an inserted line may match a deleted line, and a
            repeated line counts once.
        part: The value to compute from the matching lines: "precision", "recall" or "f1".

    Returns:
        A function that takes all examples (candidates with their references). It returns the score function,
        which takes one example and returns its score.
    """
    return lambda _: partial(exact_match_and_lemod.lemod, part=part, multiset=bool(argument))


def token_bleu(argument: str, of_edits: bool) -> Prepare:
    """Set up the metric BLEU-4 over the tokens of code.

    Args:
        argument: Not used. All functions of this kind have this parameter, because some metrics need it.
        of_edits: Whether to compare only the lines in which candidate and reference differ from the source
            (the code before it was edited), instead of the whole code.

    Returns:
        A function that takes all examples (candidates with their references). It returns the score function,
        which takes one example and returns its score.
    """
    compare = compare_edits if of_edits else compare_whole
    return lambda _: partial(compare, score=bleu_of_tokens)


def crystalbleu(argument: str, of_edits: bool) -> Prepare:
    """Set up the metric CrystalBLEU.

    CrystalBLEU is a BLEU-4 that ignores the most frequent n-grams of code, such as `) ;`.

    Args:
        argument: The path of a file with the n-grams to ignore. If it is empty, the most frequent n-grams in
            the references of the examples are ignored.
        of_edits: Whether to compare only the lines in which candidate and reference differ from the source
            (the code before it was edited), instead of the whole code.

    Returns:
        A function that takes all examples (candidates with their references). It returns the score function,
        which takes one example and returns its score.
    """
    compare = compare_edits if of_edits else compare_whole
    given = load_shared(Path(argument)) if argument else None

    def prepare(examples: Sequence[Example]) -> ExampleScore:
        shared = shared_of_references(examples) if given is None else given
        check_languages(shared, examples, argument)
        if given is None:
            warn_if_few(shared)
        scores = {name: partial(crystal_bleu, shared=ngrams) for name, ngrams in shared.items()}
        return lambda example: compare(example, score=scores[example.language or ""])

    return prepare


def edit_similarity(argument: str) -> Prepare:
    """Set up the metric edit similarity.

    The score is from 0 to 1. It is 1 - (edit distance of candidate and reference in characters) / (largest
    possible distance of texts with these lengths). Both texts are first converted to normal form: a uniform
    layout, without comments, docstrings and imports.

    Args:
        argument: "indel" or empty. With "indel", the distance counts inserted and deleted characters. If it
            is empty, it also counts substituted characters (Levenshtein distance).

    Returns:
        A function that takes all examples (candidates with their references). It returns the score function,
        which takes one example and returns its score.
    """
    score = indel_similarity if argument else levenshtein_similarity
    return lambda _: partial(compare_whole, score=score)


def code_chrf(argument: str) -> Prepare:
    """Set up the metric chrF.

    chrF compares the character n-grams of candidate and reference.

    Args:
        argument: Not used. All functions of this kind have this parameter, because some metrics need it.

    Returns:
        A function that takes all examples (candidates with their references). It returns the score function,
        which takes one example and returns its score.
    """
    return lambda _: partial(compare_whole, score=chrf_of_code)


def tree_similarity(argument: str) -> Prepare:
    """Set up the metric tree similarity.

    Tree similarity is 1 - (edit distance of the syntax trees) / (nodes of the larger tree). The trees are
    those of candidate and reference in normal form: without comments, docstrings and imports.

    Args:
        argument: The largest allowed number of nodes of a tree, such as "500". If it is empty, the number is
            3000. Examples with a larger tree get no score.

    Returns:
        A function that takes all examples (candidates with their references). It returns the score function,
        which takes one example and returns its score.
    """
    largest = int(argument or LARGEST_TREE)
    return lambda _: partial(syntax_tree_similarity, largest=largest)


def codebleu(argument: str) -> Prepare:
    """Set up the metric CodeBLEU.

    CodeBLEU compares n-grams, syntax and data flow of candidate and reference. Both are first converted to
    normal form: a uniform layout, without comments, docstrings and imports.

    Args:
        argument: Not used. All functions of this kind have this parameter, because some metrics need it.

    Returns:
        A function that takes all examples (candidates with their references). It returns the score function,
        which takes one example and returns its score.
    """

    def score(example: Example) -> float:
        language = example.language or ""
        return compare_whole(example, lambda a, b: code_bleu(a, b, language).mean)

    return lambda _: score


def patch_size(argument: str, ratio: bool) -> Prepare:
    """Set up the metric RPS or RPSR.

    Both metrics tell how much the candidate differs from the source, which is the code before it was edited.
    Let d be the edit distance from the source's syntax tree to the candidate's syntax tree.

    - RPS (relative patch size) is d divided by the number of nodes of the source's tree.
    - RPSR (relative patch size ratio) is d divided by the edit distance from the source's syntax tree to the
      reference's syntax tree.

    Args:
        argument: The largest allowed number of nodes of a tree, such as "500". If it is empty, the number is
            3000. Examples with a larger tree get no score.
        ratio: True for RPSR, False for RPS.

    Returns:
        A function that takes all examples (candidates with their references). It returns the score function,
        which takes one example and returns its score.
    """
    largest = int(argument or LARGEST_TREE)
    size = relative_patch_size_ratio if ratio else relative_patch_size
    return lambda _: partial(size, largest=largest)
