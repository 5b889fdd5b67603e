"""Results of attempts, stored in `results.jsonl`, with their patches and statistics."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simllm.code.tree_distance import PatchSize, patch_size
from simllm.errors import InputError
from simllm.io import reading
from simllm.io.reading import build
from simllm.llm.model import content_hash
from simllm.llm.records import KeptValues
from simllm.metrics.code.trees import clang_patch_size, ratio_of_sizes
from simllm.repair.items import RepairItem
from simllm.stats.classification import average_pass_rate, pass_at_k
from simllm.stats.resampling import SEED, interval, resampled_means

RESULTS = "results.jsonl"
# In place of a verdict, where the request failed for good: the conversation was too long for the model, or
# the endpoint refused it.
OVERFLOW, REFUSED = "context overflow", "refused"


@dataclass(frozen=True)
class TestResult:
    """The result of one test of a program: the verdict, and the beginning of the program's output."""

    __test__ = False  # for pytest

    verdict: str
    output: str


@dataclass(frozen=True)
class RoundResult:
    """The result of one round: the messages to the model, the model's reply, and the judgement of the reply.

    Attributes:
        round: The number of the round. A skipped round is counted: if round 2 is skipped, the numbers are 1,
            3 and so on.
        messages: The messages of this round, without those of earlier rounds, each with "role" and "content".
        reply: The text of the reply; None if the request failed for good.
        code: The program, or the summary, in the reply; None if there is none.
        verdict: The verdict on a program, or "context overflow", or "refused"; None for a summary.
        tests: The result of each test; empty for a summary, or if the program did not run.
        compile_log: The messages of the compiler if the program does not compile; otherwise "".
        score: The metric's score of the summary; None if it is not finite.
        prompt_tokens: Number of tokens of the request; None if the endpoint does not report it.
        completion_tokens: Number of tokens of the reply; None if the endpoint does not report it.
        is_ambiguous: Whether several blocks of code in the reply fitted equally well.
        is_cut: Whether the reply ends at the largest number of tokens.
        kind: What the prompt adds to the task and the program, such as "guidance" or "nothing".
    """

    round: int
    messages: tuple[dict[str, str], ...]
    reply: str | None
    code: str | None
    verdict: str | None
    accepted: bool
    tests: tuple[TestResult, ...] = ()
    compile_log: str = ""
    score: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    is_ambiguous: bool = False
    is_cut: bool = False
    kind: str = "unknown"


@dataclass(frozen=True)
class AttemptResult:
    """The result of one attempt.

    Attributes:
        item: The id of the item.
        rounds: The results of the rounds in which the model was asked.
        skipped: The numbers of the rounds that had nothing new to tell the model.
        open: The reason why the attempt is not finished; None if it is finished.
        patch: The size of the patch. A reply without code counts as an empty program. None for a summary, for
            an open attempt and for very large programs.
        fix_patch: The size of the change to the fix; None as for `patch`, or if no fix is known.
    """

    item: str
    attempt: int
    rounds: tuple[RoundResult, ...]
    skipped: tuple[int, ...] = ()
    open: str | None = None
    patch: PatchSize | None = None
    fix_patch: PatchSize | None = None

    @property
    def accepted(self) -> bool:
        """True if the reply in the last round was accepted; False if the model was never asked."""
        return bool(self.rounds) and self.rounds[-1].accepted


AttemptsByItem = Mapping[str, Sequence[AttemptResult]]  # the finished attempts at each item


def finished_by_item(attempts: Sequence[AttemptResult]) -> AttemptsByItem:
    """Group finished attempts by the id of their item; `attempts` must be sorted by item."""
    # groupby joins neighbours only, which is why the attempts must be sorted by item.
    finished = [attempt for attempt in attempts if attempt.open is None]
    return {id_: list(group) for id_, group in groupby(finished, key=lambda attempt: attempt.item)}


def to_json_lines(attempts: Iterable[AttemptResult]) -> str:
    """Format the results of attempts as the text of `results.jsonl`."""
    return "".join(json.dumps(asdict(attempt), ensure_ascii=False) + "\n" for attempt in attempts)


def read_results(run: Path) -> list[AttemptResult]:
    """Read `results.jsonl` in the folder of a run."""
    if not (run / RESULTS).is_file():
        raise InputError(f"{run}: has no {RESULTS}; expected the folder of a run")
    return [build(AttemptResult, row, where) for where, row in reading.objects(run / RESULTS)]


def by_round(finished: Sequence[AttemptResult], most_rounds: int) -> list[dict[str, Any]]:
    """Count for each round how many finished attempts reached it, and how many were accepted in it.

    "rate" is "accepted" / "reached". "share by then" is the share of all finished attempts that were accepted
    in this round or earlier. Both are None if the denominator is 0.
    """
    rows, before = [], 0
    for number in range(1, most_rounds + 1):
        found = [one for attempt in finished for one in attempt.rounds if one.round == number]
        accepted = sum(one.accepted for one in found)
        before += accepted
        rows.append(
            {
                "round": number,
                "reached": len(found),
                "accepted": accepted,
                "rate": accepted / len(found) if found else None,
                "accepted by then": before,
                "share by then": before / len(finished) if finished else None,
            }
        )
    return rows


def compute_intervals(
    items: AttemptsByItem, passed: Mapping[str, Sequence[bool]], most_attempts: int
) -> dict[str, list[float] | None]:
    """Compute 95% bootstrap intervals of AVG, of TOP-k for k up to `most_attempts`, and of RPSR.

    `passed` has for each item whether each of its finished attempts was accepted. An interval is None if the
    value is not defined, or if the interval would look too certain (see `interval`).
    """
    sums: dict[str, list[tuple[float, int]]] = {  # for each item, a numerator and a denominator
        "AVG": [(average_pass_rate([each]), 1) for each in passed.values()]
    }
    for k in range(1, most_attempts + 1):
        sums[f"TOP-{k}"] = [
            (pass_at_k([each], k), 1) if len(each) >= k else (0, 0) for each in passed.values()
        ]
    ratios = [
        [ratio for one in each if one.accepted and (ratio := patch_ratio(one)) is not None]
        for each in items.values()
    ]
    sums["RPSR"] = [(sum(each), len(each)) for each in ratios]
    # One item has nothing to resample.
    if len(items) < 2:
        return dict.fromkeys(sums)
    values = np.array(list(sums.values()), np.float64)  # (figures, items, 2)
    # Numerators and denominators in one call, so that both come from the same resamples: a resample of "RPSR"
    # has another number of attempts each time.
    means = resampled_means(
        np.concatenate([values[:, :, 0], values[:, :, 1]]), np.random.default_rng(SEED)
    ).reshape(-1, 2, len(sums))
    counted = (values[:, :, 1] > 0).sum(axis=1)
    return {name: _interval(means[:, 0, i], means[:, 1, i], int(counted[i])) for i, name in enumerate(sums)}


def _interval(
    numerators: NDArray[np.float64], denominators: NDArray[np.float64], items: int
) -> list[float] | None:
    """Return the ends of the 95% interval of a quotient from its (resamples,) numerators and denominators.

    `items` is the number of items that have a value.
    """
    # A resample in which no item has a value says nothing about the mean of the values.
    some = denominators > 0
    ends = interval(numerators[some] / denominators[some], items) if some.any() else (np.nan, np.nan)
    return None if np.isnan(ends[0]) else list(ends)


RPSR = {"mean": "RPSR", "published": "RPSR published"}  # the names of its two definitions in the summary


TREES = ("tree-sitter", "libclang")


def measure_patches(
    attempt: AttemptResult, item: RepairItem, patches: KeptValues, trees: str = TREES[0]
) -> AttemptResult:
    """Add the sizes of the patch and of the change to the fix to the result of an attempt.

    The result of an open attempt, or of an attempt to summarize code, is returned unchanged.
    """
    if item.reference is not None or attempt.open or not attempt.rounds:
        return attempt
    # A reply without code counts as an empty program: with None, "RPSR published" would leave out the item.
    made = _size_of_patch(item, attempt.rounds[-1].code or "", patches, trees)
    fix = None if item.fix is None else _size_of_patch(item, item.fix, patches, trees)
    return replace(attempt, patch=made, fix_patch=fix)


def _size_of_patch(item: RepairItem, code: str, patches: KeptValues, trees: str) -> PatchSize | None:
    """Return the size of the patch that turns an item's program into another; None if a tree is too large."""

    def measure() -> dict[str, int] | None:
        if trees == "libclang":
            size = clang_patch_size(item.code, code)
        else:
            size = patch_size(item.code, code, item.language or "")
        return asdict(size) if size else None

    content = {"language": item.language, "code": item.code, "other": code}
    value = patches.get(content_hash(content | ({} if trees == TREES[0] else {"trees": trees})), measure)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InputError(f"patches.jsonl: a stored size must be a JSON object, not {str(value)[:40]}")
    found = build(PatchSize, value, "patches.jsonl: a stored size")
    # A tree has at least its root.
    if min(found.edits, found.nodes - 1, found.larger - 1) < 0:
        raise InputError("patches.jsonl: a stored size is negative, or of an empty tree")
    return found


def patch_statistics(items: AttemptsByItem) -> dict[str, Any]:
    """Compute RPS and RPSR over the finished attempts at each item; None if a mean is not defined.

    "RPS" and "RPSR" are means over accepted attempts. "RPSR, left out, no fix" counts programs that are too
    large to be measured, too. "RPSR published" is RPSR as in the code of the repair method CREF, from all
    attempts: `ratio_of_sizes` has the formula.
    """
    accepted = [attempt for each in items.values() for attempt in each if attempt.accepted]
    sizes = [attempt.patch.edits / attempt.patch.nodes for attempt in accepted if attempt.patch]
    ratios = [ratio for attempt in accepted if (ratio := patch_ratio(attempt)) is not None]
    is_equal = [bool(attempt.fix_patch and not attempt.fix_patch.edits) for attempt in accepted]
    published = ratio_of_sizes(
        ([attempt.patch for attempt in each], each[0].fix_patch) for each in items.values() if each
    )
    return {
        "RPS": float(np.mean(sizes)) if sizes else None,
        "RPSR": float(np.mean(ratios)) if ratios else None,
        "RPSR, counted": len(ratios),
        "RPSR, left out, fix at distance 0": sum(is_equal),
        "RPSR, left out, no fix": len(accepted) - len(ratios) - sum(is_equal),
        "RPSR published": None if math.isnan(published) else published,
    }


def patch_ratio(attempt: AttemptResult) -> float | None:
    """Return the RPSR of an attempt; None without a fix, with a fix of no edits, or if a program is too
    large.
    """
    made, wanted = attempt.patch, attempt.fix_patch
    return made.edits / wanted.edits if made and wanted and wanted.edits else None
