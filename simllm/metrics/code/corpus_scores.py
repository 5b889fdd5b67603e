"""Corpus values: the sum of the numerators of a metric's scores over the sum of the denominators.

A corpus value is not the mean of the scores: large examples weigh more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from simllm.metrics.code.built_in import AS_PUBLISHED
from simllm.metrics.code.crystalbleu import (
    check_languages,
    corpus_crystal_bleu,
    load_shared,
    shared_of_references,
)
from simllm.metrics.code.patch_size import corpus_patch_size_ratio
from simllm.metrics.code.similarity import (
    LARGEST_TREE,
    agreement,
    corpus_bleu_of_tokens,
    distinct_lines,
    edited_lines,
    edits,
    whole_lines,
)
from simllm.metrics.interface import Example

Items = Sequence[Sequence[Example]]  # for each item, the examples of its candidates
Lines = Callable[[Example], tuple[list[str], list[str]]]  # returns lines of the candidate and the reference


def corpus_value(name: str, items: Items) -> float | None:
    """Compute the corpus value of a metric, such as "lemod" or "crystalbleu-diff=FILE".

    The result is None if the metric has no corpus value (as for "edit-similarity" and all metrics as
    published), if an example takes too long to parse, and for "rpsr" also if the denominator is 0. The
    examples of an item have the same source and reference.
    """
    kind, _, argument = name.partition("=")
    if kind not in _CORPUS_VALUES or argument == AS_PUBLISHED:
        return None
    try:
        value = _CORPUS_VALUES[kind](items, argument)
    except TimeoutError:
        return None
    return None if math.isnan(value) else value


def _lemod(items: Items, argument: str, part: str) -> float:
    common = edited = expected = 0
    for example in chain.from_iterable(items):
        found = edits(example)
        candidate, reference = (
            distinct_lines(lines, multiset=bool(argument)) for lines in (found.candidate, found.reference)
        )
        # The lines of a candidate without code still count in the denominators.
        common += 0 if found.no_code else (candidate & reference).total()
        edited += candidate.total()
        expected += reference.total()
    return agreement(common, edited, expected, part)


def _bleu(items: Items, argument: str, lines: Lines) -> float:
    return corpus_bleu_of_tokens(_texts(example, lines) for example in chain.from_iterable(items))


def _crystal_bleu(items: Items, argument: str, lines: Lines) -> float:
    examples = list(chain.from_iterable(items))
    shared = load_shared(Path(argument)) if argument else shared_of_references(examples)
    check_languages(shared, examples, argument)
    return corpus_crystal_bleu((*_texts(one, lines), shared[one.language or ""]) for one in examples)


def _texts(example: Example, lines: Lines) -> tuple[str, str]:
    """Return the joined lines of the candidate and of the reference that BLEU compares."""
    candidate, reference = lines(example)
    # A candidate without code matches nothing. Without this rule, it would be an edit that deletes all lines
    # of the source, and BLEU would reward the deleted lines that the reference deletes, too.
    return "\n".join(candidate) if whole_lines(example)[0] else "", "\n".join(reference)


def _patch_size_ratio(items: Items, argument: str) -> float:
    return corpus_patch_size_ratio(items, int(argument or LARGEST_TREE))


_CORPUS_VALUES: dict[str, Callable[[Items, str], float]] = {
    "lemod": partial(_lemod, part="f1"),
    "lemod-precision": partial(_lemod, part="precision"),
    "lemod-recall": partial(_lemod, part="recall"),
    "token-bleu": partial(_bleu, lines=whole_lines),
    "bleu-diff": partial(_bleu, lines=edited_lines),
    "crystalbleu": partial(_crystal_bleu, lines=whole_lines),
    "crystalbleu-diff": partial(_crystal_bleu, lines=edited_lines),
    "rpsr": _patch_size_ratio,
}
