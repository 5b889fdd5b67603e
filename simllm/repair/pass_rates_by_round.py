"""Pass rates by round: how many attempts reach each round, and how many are accepted in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simllm.repair.attempt_results import AttemptResult


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
