"""Pass rates by round: how many of a model's attempts reach each round, and how many succeed in it.

A round is one request to the model. An attempt has one or more rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simllm.repair.attempt_results import AttemptResult


def by_round(finished: Sequence[AttemptResult], most_rounds: int) -> list[dict[str, Any]]:
    """Count for each round how many attempts reached it, and how many were accepted in it.

    A round is one request to the model. An attempt ends with the round in which the reply is accepted.

    Args:
        finished: The finished attempts.
        most_rounds: The largest number of rounds in an attempt.

    Returns:
        A dict for each round, in the order of the rounds, with these keys:

        - "round": The number of the round, from 1.
        - "reached": The number of attempts that reached the round.
        - "accepted": The number of attempts that were accepted in the round.
        - "rate": "accepted" / "reached"; None if no attempt reached the round.
        - "accepted by then": The number of attempts that were accepted in this round or earlier.
        - "share by then": "accepted by then" / number of all finished attempts; None if there are none.
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
