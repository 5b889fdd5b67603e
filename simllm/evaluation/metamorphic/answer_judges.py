"""Judges of answers: functions that decide whether a tool's answer about some code is a success.

A tool is a program that reads code and writes an answer, such as a summary or corrected code. An item is a
piece of code, in its original and in a rewritten form. A draw is one answer of a tool about the original or
the rewritten code of an item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from simllm.errors import InputError
from simllm.evaluation.metamorphic.read_tool_results import SIDES, Draw
from simllm.evaluation.metamorphic.tool_command import run_command
from simllm.metrics.metric_interface import Example, Metric
from simllm.stats.paired_bootstrap_and_permutation import SEED, interval, resampled_means, sign_flip_p

Judge = Callable[[Sequence[Draw]], list[bool]]


def judge_answers(draws: Sequence[Draw], judge: Judge | None) -> None:
    """Decide whether a tool's answers are successes, and set their attribute `success`.

    Answers whose `success` is already known are not judged again. Where the tool crashed and gave no answer,
    `success` stays None.

    Args:
        draws: The answers, changed in place.
        judge: The function that decides which answers are successes. It may be None if all successes are
            already known.

    Raises:
        InputError: It is not known whether an answer is a success, and `judge` is None.
    """
    open_draws = [draw for draw in draws if draw.success is None and draw.output is not None]
    if open_draws and judge is None:
        where = open_draws[0].where or open_draws[0].id
        raise InputError(f"{where}: an output without success needs a label, a judge command or a metric")
    if open_draws and judge is not None:
        for draw, success in zip(open_draws, judge(open_draws), strict=True):
            draw.success = success


def by_label(items: Mapping[str, dict[str, Any]]) -> Judge:
    """Make a judge that calls an answer a success if it equals the `label` of its item.

    A judge is a function that decides which answers of a tool are successes. An item is a piece of code that
    the answers are about. White space around the answer and the label is ignored.

    Args:
        items: The items by id; each has a field `label`, the right answer.
    """

    def judge(draws: Sequence[Draw]) -> list[bool]:
        return [(draw.output or "").strip() == str(_field(items, draw, "label")).strip() for draw in draws]

    return judge


def by_command(command: Sequence[str], parallel: int, timeout: float) -> Judge:
    """Make a judge that runs a command on each answer; exit status 0 means that the answer is a success.

    A judge is a function that decides which answers of a tool are successes. An answer is about an item: a
    piece of code in an original and a transformed (rewritten) form.

    Args:
        command: The words of the command, which reads the answer from its standard input. In the words,
            `{id}` is replaced by the item's id, and `{side}` by "original" or "transformed".
        parallel: The number of commands that run at the same time.
        timeout: The time limit of a command, in seconds. If it is exceeded, the answer is a failure.
    """

    def judge_one(draw: Draw) -> bool:
        words = [word.replace("{id}", draw.id).replace("{side}", draw.side) for word in command]
        return run_command(words, draw.output or "", {}, timeout)[0] == "0"

    def judge(draws: Sequence[Draw]) -> list[bool]:
        with ThreadPoolExecutor(parallel) as pool:
            return list(pool.map(judge_one, draws))

    return judge


def by_metric(metric: Metric, threshold: float, items: Mapping[str, dict[str, Any]]) -> Judge:
    """Make a judge that calls an answer a success if a metric gives it a high enough score.

    A judge is a function that decides which answers of a tool are successes. An item is a piece of code that
    the answers are about. The metric compares each answer with the `reference` of its item.

    Args:
        metric: The metric.
        threshold: An answer is a success if its score is at least this value.
        items: The items by id; each has a field `reference`, a right answer.
    """

    def judge(draws: Sequence[Draw]) -> list[bool]:
        examples = [Example(draw.output or "", str(_field(items, draw, "reference"))) for draw in draws]
        return [bool(value >= threshold) for value in metric.score(examples).values]

    return judge


def _field(items: Mapping[str, dict[str, Any]], draw: Draw, name: str) -> Any:
    """Return a field, such as the label, of the item that an answer is about.

    Args:
        items: The items (pieces of code with further fields) by id.
        draw: The answer of a tool.
        name: The name of the field, such as "label".

    Raises:
        InputError: The item is unknown or lacks the field.
    """
    value = items.get(draw.id, {}).get(name)
    if value is None:
        raise InputError(f"{draw.where or 'the items'}: the item {draw.id} has no {name}")
    return value


@dataclass(frozen=True)
class OutputAgreement:
    """The similarity of a tool's answers about rewritten code to its answers about the original code.

    An item is a piece of code in two versions: original and rewritten. The tool gives several answers about
    an item. A metric computes the similarity of two answers about the same item. The similarities are
    averaged within each item, and then over the items.

    Attributes:
        items: The number of items that are averaged.
        across: The mean similarity of an answer about the original code and an answer about the rewritten
            code.
        within: The mean similarity of two answers about the original code. It shows how much answers differ
            by chance.
        difference: `across` - `within`; negative if rewriting changes the answers.
        low: The lower end of the 95% bootstrap interval of `difference`; None with fewer than 2 items.
        high: The upper end of this interval; None with fewer than 2 items.
        p: The p-value of a sign flip test of the hypothesis that `difference` is 0.
    """

    items: int
    across: float
    within: float
    difference: float
    low: float | None
    high: float | None
    p: float


def measure_agreement(draws: Sequence[Draw], metric: Metric) -> OutputAgreement | None:
    """Measure how much a tool's answers change when its input code is rewritten.

    Answers about the rewritten code are compared with answers about the original code. As a baseline, answers
    about the same original code are compared with each other.

    Args:
        draws: The answers of one tool. They are about items: pieces of code in an original form and in one
            rewritten form.
        metric: The metric that scores one answer against another.

    Returns:
        The mean similarities over the items with at least two answers about the original code and at least
        one about the rewritten code; None if there is no such item.
    """
    answers: dict[str, dict[str, list[str]]] = {}
    for draw in draws:
        if draw.output is not None:
            answers.setdefault(draw.id, {side: [] for side in SIDES})[draw.side].append(draw.output)
    pairs: list[tuple[str, str]] = []
    parts = []
    for own in answers.values():
        original, transformed = (own[side] for side in SIDES)
        if len(original) > 1 and transformed:
            across, within = list(product(original, transformed)), list(combinations(original, 2))
            parts.append((len(pairs), len(across), len(within)))
            pairs += across + within
    if not parts:
        return None
    scores = metric.score([Example(a, b) for a, b in pairs]).values
    means = np.array(
        [
            (scores[at : at + first].mean(), scores[at + first : at + first + second].mean())
            for at, first, second in parts
        ]
    )
    differences = means[:, 0] - means[:, 1]
    low = high = None
    if len(parts) > 1:
        low, high = interval(resampled_means(differences[None], np.random.default_rng(SEED))[:, 0])
    across_mean, within_mean = means.mean(axis=0)
    return OutputAgreement(
        len(parts),
        float(across_mean),
        float(within_mean),
        float(differences.mean()),
        low,
        high,
        sign_flip_p(differences, np.random.default_rng(SEED)),
    )
