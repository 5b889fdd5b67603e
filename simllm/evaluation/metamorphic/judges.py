"""Judges, which decide whether a tool's answers are successes, and the agreement of answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from simllm.errors import InputError
from simllm.evaluation.metamorphic.commands import (
    LARGEST_OUTPUT,
    TIMEOUT,
    TOO_LONG,
    CommandRunner,
    item_folder,
)
from simllm.evaluation.metamorphic.results import FAILING, LATE, OUTCOMES, PLAUSIBLE, SIDES, Draw
from simllm.execution.watchdog import as_ended
from simllm.io import tables
from simllm.metrics.interface import Example, Metric
from simllm.stats.resampling import paired_mean

Judge = Callable[[Sequence[Draw]], list[str]]  # returns an outcome for each draw
_PLACEHOLDER = re.compile(r"\{(?:id|side)\}")
# Programs that run a word as code after an option, and programs that run the words after them as code.
_INTERPRETER = re.compile(
    r"(?:ba|da|z|k|mk|c|tc|fi|a|rba|pw)?sh|busybox|powershell|(?:python|pypy|perl|ruby|php|lua)[\d.]*|"
    r"node(?:js)?|deno|bun|R|Rscript|su|sudo|doas|script|env|nice|nohup|time|exec|command|setsid|stdbuf"
)
_RUNS_ALL = frozenset(
    ("ssh", "rsh", "eval", "watch", "parallel", "xargs", "find", "awk", "gawk", "mawk", "sed")
)
_RUNS_NEXT = re.compile(r"-\w*[ceEprS]|--?(?:eval|exec|execute|command|print|expression|run|split-string)=?")
_CODE = re.compile(r"[\s;|&$`()<>'\"\\]")  # characters of a template's word that is itself code
_SAFE = re.compile(r"[\w.,:@%+=/][\w.,:@%+=/-]*")


def judge_answers(draws: Sequence[Draw], judge: Judge | None) -> None:
    """Set `success` and `outcome` of the draws that are not judged yet; after a crash they stay None.

    `judge` may be None only if all successes are known.
    """
    open_draws = [draw for draw in draws if draw.success is None and draw.output is not None]
    if open_draws and judge is None:
        where = open_draws[0].where or open_draws[0].id
        raise InputError(f"{where}: an output without success needs a label, a judge command or a metric")
    if open_draws and judge is not None:
        for draw, outcome in zip(open_draws, judge(open_draws), strict=True):
            draw.outcome, draw.success = outcome, outcome == PLAUSIBLE


def by_label(items: Mapping[str, dict[str, Any]]) -> Judge:
    """Make a judge: a success equals the `label` of its item, but for white space around both."""

    def judge(draws: Sequence[Draw]) -> list[str]:
        return [
            _outcome((draw.output or "").strip() == str(_field(items, draw, "label")).strip())
            for draw in draws
        ]

    return judge


def _outcome(is_success: bool) -> str:
    return PLAUSIBLE if is_success else FAILING


def by_command(
    command: Sequence[str],
    parallel: int,
    timeout: float,
    warned: list[str],
    items: Mapping[str, dict[str, Any]] | None = None,
) -> Judge:
    """Make a judge that runs a command on each answer, and reads the outcome as `outcome_of` does.

    The command reads the answer from standard input. In its words, `{id}` and `{side}` are replaced;
    SIMLLM_ID and SIMLLM_SIDE in the environment hold them, too, and SIMLLM_FOLDER a folder with the fields
    and files of the item. After `timeout` seconds, the outcome is a timeout. `warned` gets sentences about
    commands that failed themselves.
    """
    check_command(command)

    def judge(draws: Sequence[Draw]) -> list[str]:
        check_command(command, {draw.id for draw in draws})
        # The runner is left first: it kills the commands for which the threads of the pool wait.
        with ThreadPoolExecutor(parallel) as pool, CommandRunner() as runner:

            def run(draw: Draw) -> tuple[str, str]:
                values = {"{id}": draw.id, "{side}": draw.side}
                # One pass over each word: an id that itself contains "{side}" must stay as it is.
                words = [_PLACEHOLDER.sub(lambda found: values[found[0]], word) for word in command]
                variables = {"SIMLLM_ID": draw.id, "SIMLLM_SIDE": draw.side}
                with item_folder(_all_fields((items or {}).get(draw.id, {}))) as folder:
                    variables["SIMLLM_FOLDER"] = folder
                    return runner.run(words, draw.output or "", variables, timeout)

            try:
                futures = [pool.submit(run, draw) for draw in draws]
                for future in as_ended(futures):
                    future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        ended = [future.result() for future in futures]
        warned.extend(_failures(ended))
        return [outcome_of(status, printed) for status, printed in ended]

    return judge


def _all_fields(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a judge sees of an item: all its fields, with the original code."""
    return {name: value for name, value in item.items() if name != "where"}


_LATE_STATUS = "124"  # of the program `timeout`


def outcome_of(status: str, printed: str) -> str:
    """Return the outcome that a judge's command tells.

    If the last line that it prints is one of `OUTCOMES`, this is the outcome; otherwise the exit status
    decides: 0 is plausible, 124 is a timeout, and all others are failing. A command that prints "plausible"
    and then fails is failing.
    """
    word = next((line.strip() for line in reversed(printed.splitlines()) if line.strip()), "")
    if status == TIMEOUT:
        return LATE
    if word in OUTCOMES and not (word == PLAUSIBLE and status != "0"):
        return word
    return LATE if status == _LATE_STATUS else _outcome(status == "0")


def _failures(ended: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield sentences about commands (status, output) that did not judge an answer, but failed themselves."""
    late = sum(status == TIMEOUT for status, _ in ended)
    # 126 and 127 are a shell's statuses for a command that cannot run; a minus stands for a signal.
    broken = sum(status in ("126", "127") or status.startswith("-") for status, _ in ended)
    long = sum(status == TOO_LONG for status, _ in ended)
    found = (
        (late, "took too long"),
        (broken, "crashed or was not found"),
        (long, f"printed more than {LARGEST_OUTPUT >> 20} MiB"),
    )
    for count, what in found:
        if count:
            yield f"the judge {what} on {count:,} of {len(ended):,} answers, which count as failures"


def check_command(command: Sequence[str], ids: Iterable[str] = (), of: str = "judge") -> None:
    """Refuse a command that would run the id of an item as code, and ids that could do harm in it.

    `of` tells whose command it is, for messages.

    Ids that a shell would interpret are refused if the command names an interpreter with a script. Ids that
    would be read as an option, or that lead out of a folder, are refused everywhere.
    """
    names = [word.rpartition("/")[2] for word in command]
    interpreters = [bool(_INTERPRETER.fullmatch(name)) for name in names]
    # In sh -c 'check $1' sh {id}, the id is data; but the script may lack quotation marks around $1.
    has_script = any(interpreters) and any(_RUNS_NEXT.fullmatch(word) for word in command)
    places = [number for number, word in enumerate(command) if "{id}" in word]
    for at in places:
        word, before = command[at], command[at - 1] if at else ""
        option = word.partition("{")[0]
        is_parameter = any(map(_RUNS_NEXT.fullmatch, command[: at - 1]))  # of a script: sh -c SCRIPT sh {id}
        is_program = at == 0 or (interpreters[at - 1] and not is_parameter)
        follows = any(interpreters[:at]) and bool(
            _RUNS_NEXT.fullmatch(before) or _RUNS_NEXT.fullmatch(option)
        )
        is_joined = bool(_RUNS_ALL.intersection(names[:at]) or _CODE.search(_PLACEHOLDER.sub("", word)))
        if is_program or follows or is_joined:
            raise InputError(
                f"{{id}} in {word!r} of the {of}'s command may run as code; pass it as a word of its own to "
                "a program, or read the environment variable SIMLLM_ID"
            )
    if not places:
        return
    inner = any(command[at] != "{id}" for at in places)
    for name in ids:
        is_option = name.startswith("-") and any(command[at].startswith("{id}") for at in places)
        # An id that is a word of its own may be any text; as a part of a path, it may lead elsewhere.
        leads_out = inner and (".." in name.split("/") or name.startswith("/"))
        if is_option or leads_out or "\0" in name or (has_script and not _SAFE.fullmatch(name)):
            raise InputError(
                f"the id {name!r} cannot be put into the {of}'s command; read the environment variable "
                "SIMLLM_ID instead of {id}"
            )


def by_metric(metric: Metric, threshold: float, items: Mapping[str, dict[str, Any]]) -> Judge:
    """Make a judge: a success has a score of at least `threshold` against the `reference` of its item."""

    def judge(draws: Sequence[Draw]) -> list[str]:
        examples = [Example(draw.output or "", str(_field(items, draw, "reference"))) for draw in draws]
        return [_outcome(bool(value >= threshold)) for value in metric.score(examples).values]

    return judge


def _field(items: Mapping[str, dict[str, Any]], draw: Draw, name: str) -> Any:
    """Return a field, such as the label, of the item of a draw."""
    value = items.get(draw.id, {}).get(name)
    if value is None:
        raise InputError(f"{draw.where or 'the items'}: the item {draw.id} has no {name}")
    return value


@dataclass(frozen=True)
class OutputAgreement:
    """The similarity of a tool's answers about variants to its answers about originals.

    Similarities of two answers are averaged within each item, and then over the items.

    Attributes:
        across: The mean similarity of an answer about the original and an answer about the variant.
        within: The mean similarity of two answers about the original. It shows how much answers differ by
            chance.
        difference: `across` - `within`; negative if rewriting changes the answers.
        low: The lower end of the 95% bootstrap interval of `difference`; None with fewer than 6 items, or if
            all items have the same difference.
        high: The upper end of this interval, or None.
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
    """Measure how much the answers of one tool to one kind of variants change by rewriting.

    None without an item that has two answers about its original and one about its variant.
    """
    answers: dict[str, dict[str, list[str]]] = {}
    for draw in draws:
        if draw.output is not None:
            answers.setdefault(draw.id, {side: [] for side in SIDES})[draw.side].append(draw.output)
    pairs: list[tuple[str, str]] = []
    parts = []
    for own in answers.values():
        original, transformed = (own[side] for side in SIDES)
        # Without two answers about the original, there is no baseline for the noise of the draws.
        if len(original) > 1 and transformed:
            across_sides, within_side = list(product(original, transformed)), list(combinations(original, 2))
            parts.append((len(pairs), len(across_sides), len(within_side)))
            pairs += across_sides + within_side
    if not parts:
        return None
    # All pairs at once, because metrics score in batches.
    scores = metric.score([Example(a, b) for a, b in pairs]).values
    means = np.array(
        [
            (scores[at : at + first].mean(), scores[at + first : at + first + second].mean())
            for at, first, second in parts
        ]
    )
    across, within = means.mean(axis=0).tolist()
    return OutputAgreement(len(parts), across, within, *tables.finite(paired_mean(means[:, 0] - means[:, 1])))
