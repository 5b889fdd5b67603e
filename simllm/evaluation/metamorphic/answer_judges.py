"""Judges of answers: whether an answer about original or rewritten code is a success."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from simllm.errors import InputError
from simllm.evaluation.metamorphic.recorded_draws import SIDES, Draw
from simllm.evaluation.metamorphic.tool_answers import run_command
from simllm.metrics.protocol import Example, Metric
from simllm.stats.paired_resampling import SEED, interval, resampled_means, sign_flip_p

Judge = Callable[[Sequence[Draw]], list[bool]]


def judge_answers(draws: Sequence[Draw], judge: Judge | None) -> None:
    """Judge the answers of draws whose success is unknown.

    Args:
        draws: The draws; their `success` is set. Crashes stay without one.
        judge: The judge; None if every success is known.

    Raises:
        InputError: An answer has no success, and there is no judge.
    """
    open_draws = [draw for draw in draws if draw.success is None and draw.output is not None]
    if open_draws and judge is None:
        where = open_draws[0].where or open_draws[0].id
        raise InputError(f"{where}: an output without success needs a label, a judge command or a metric")
    if open_draws and judge is not None:
        for draw, success in zip(open_draws, judge(open_draws), strict=True):
            draw.success = success


def by_label(items: Mapping[str, dict[str, Any]]) -> Judge:
    """Return a judge for which an answer is a success if it equals the label of its item.

    White space around the answer is ignored.
    """

    def judge(draws: Sequence[Draw]) -> list[bool]:
        return [(draw.output or "").strip() == str(_field(items, draw, "label")).strip() for draw in draws]

    return judge


def by_command(command: Sequence[str], parallel: int, timeout: float) -> Judge:
    """Return a judge that runs a command on each answer; exit status 0 means success.

    Args:
        command: The words of the command; `{id}` and `{side}` in them are replaced.
        parallel: The number of commands that run at the same time.
        timeout: The longest time of a command, in seconds; a command that takes longer means failure.
    """

    def judge_one(draw: Draw) -> bool:
        words = [word.replace("{id}", draw.id).replace("{side}", draw.side) for word in command]
        return run_command(words, draw.output or "", {}, timeout)[0] == "0"

    def judge(draws: Sequence[Draw]) -> list[bool]:
        with ThreadPoolExecutor(parallel) as pool:
            return list(pool.map(judge_one, draws))

    return judge


def by_metric(metric: Metric, threshold: float, items: Mapping[str, dict[str, Any]]) -> Judge:
    """Return a judge that scores each answer against the reference of its item by a metric.

    An answer is a success if its score reaches the threshold.
    """

    def judge(draws: Sequence[Draw]) -> list[bool]:
        examples = [Example(draw.output or "", str(_field(items, draw, "reference"))) for draw in draws]
        return [bool(value >= threshold) for value in metric.score(examples).values]

    return judge


def _field(items: Mapping[str, dict[str, Any]], draw: Draw, name: str) -> Any:
    """Return a field of the item of a draw."""
    value = items.get(draw.id, {}).get(name)
    if value is None:
        raise InputError(f"{draw.where or 'the items'}: the item {draw.id} has no {name}")
    return value


@dataclass(frozen=True)
class OutputAgreement:
    """How similar a tool's answers about the same item are. All figures are means over items.

    Attributes:
        items: The number of items.
        across: The mean score of an answer about the original code against one about the rewritten code.
        within: The mean score of two answers about the original code against each other. It shows how much
            answers differ by chance.
        difference: `across` - `within`; negative if rewriting changes the answers.
        low: The lower end of the 95% bootstrap interval of the difference; None with fewer than 2 items.
        high: The upper end.
        p: The p-value of the sign flip test.
    """

    items: int
    across: float
    within: float
    difference: float
    low: float | None
    high: float | None
    p: float


def measure_agreement(draws: Sequence[Draw], metric: Metric) -> OutputAgreement | None:
    """Score the answers of a tool against each other; None if no item has two answers about the original.

    Args:
        draws: The answers of one tool, all about originals and one kind of variants.
        metric: The metric.
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
