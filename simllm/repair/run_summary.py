"""The summary of a run in which a model repaired programs: settings and statistics (`summary.json`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import tables
from simllm.io.strict_loading import read_json
from simllm.repair.attempt_results import AttemptResult
from simllm.repair.repair_items import RepairItem
from simllm.repair.run_settings import RunSettings
from simllm.repair.run_statistics import compute_statistics

SUMMARY = "summary.json"
NO_GROUP = "(no group)"


def summarize(
    attempts: Sequence[AttemptResult],
    items: Sequence[RepairItem],
    settings: RunSettings,
    most_rounds: int,
    about: dict[str, Any],
) -> dict[str, Any]:
    """Make the content of `summary.json` for a run in which a model repaired programs or summarized code.

    Args:
        attempts: The results of the model's attempts at all items, in the order of the items.
        items: The items of the run. An item is an incorrect program to repair, or code to summarize.
        settings: The settings of the run.
        most_rounds: The largest number of rounds that an attempt can have. A round is a request to the model
            and its reply.
        about: A dict with the single key "judge". The value describes how the model's replies were judged:
            programs by their tests, or summaries of code by a metric.

    Returns:
        The content of `summary.json`. Under "figures", it has the statistics of all attempts, such as pass
        rates and cost. Under "groups", it has the same statistics for each group of items.
    """

    def of(chosen: Sequence[AttemptResult]) -> dict[str, Any]:
        return compute_statistics(chosen, settings.attempts, most_rounds, settings.price)

    group_of = {item.id: item.group or NO_GROUP for item in items}
    groups = dict.fromkeys(group_of.values()) if any(item.group for item in items) else {}
    open_attempts = [attempt for attempt in attempts if attempt.open is not None]
    return {
        "run": settings.label,
        "model": settings.model,
        "strategy": settings.strategy,
        "with": settings.parts,
        "attempts": settings.attempts,
        "rounds": most_rounds,
        "items": len(items),
        "complete": not open_attempts,
        "open attempts": len(open_attempts),
        "first open attempt": _first(open_attempts),
        "contained": None if settings.judge else not settings.unsafe,
        **about,
        "figures": of(attempts),
        "groups": {name: of([one for one in attempts if group_of[one.item] == name]) for name in groups},
    }


def _first(open_attempts: Sequence[AttemptResult]) -> str | None:
    """Describe the first open (unfinished) attempt, with the reason why it is open.

    Args:
        open_attempts: All open attempts of the run.

    Returns:
        A text such as "item 7, attempt 2: the run has stopped"; None if there are no open attempts.
    """
    return next((f"item {one.item}, attempt {one.attempt}: {one.open}" for one in open_attempts), None)


def to_json(summary: dict[str, Any]) -> str:
    """Format a summary as the text of `summary.json`; NaN and infinite numbers become null."""
    return json.dumps(tables.finite(summary), indent=1, ensure_ascii=False) + "\n"


def read_summary(run: Path) -> dict[str, Any]:
    """Read the summary of a run from its folder.

    Raises:
        InputError: The file `summary.json` is missing or wrong.
    """
    found = read_json(run / SUMMARY)
    if missing := [name for name in ("complete", "judge", "figures", "groups") if name not in found]:
        raise InputError(f"{run / SUMMARY}: missing key {missing[0]}")
    return found
