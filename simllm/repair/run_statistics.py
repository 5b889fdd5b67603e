"""Statistics of a run in which a model repaired programs: pass rates, sizes of the patches, and costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simllm.metrics.code.tree_distances import ratio_of_sizes
from simllm.repair.attempt_results import AttemptResult
from simllm.repair.rate_and_cost_limits import Price
from simllm.stats.bootstrap_and_permutation import SEED, interval, resampled_means
from simllm.stats.pass_at_k import average_pass_rate, pass_at_k

Items = Mapping[str, Sequence[AttemptResult]]  # the finished attempts at each item
RPSR = {"mean": "RPSR", "published": "RPSR published"}  # the names of its two definitions in the summary


def finished_by_item(attempts: Sequence[AttemptResult]) -> Items:
    """Group a model's finished attempts by item: the program to repair, or the code to summarize.

    Args:
        attempts: The attempts, sorted by item; unfinished attempts are ignored.

    Returns:
        A dict from the id of each item to its finished attempts. Items without a finished attempt are left
        out.
    """
    finished = [attempt for attempt in attempts if attempt.open is None]
    return {id_: list(group) for id_, group in groupby(finished, key=lambda attempt: attempt.item)}


def compute_statistics(
    attempts: Sequence[AttemptResult], most_attempts: int, most_rounds: int, price: Price | None
) -> dict[str, Any]:
    """Compute statistics of a model's attempts to repair programs: pass rates, sizes of patches, and costs.

    Unfinished attempts count only in "open attempts" and in the requests, tokens and costs.

    Args:
        attempts: The attempts, sorted by item (program to repair, or code to summarize).
        most_attempts: The number of attempts at each item.
        most_rounds: The largest number of rounds (requests to the model) in an attempt.
        price: The price of the model; None if it is not known.

    Returns:
        The statistics by name, as in `summary.json`, such as "AVG" (share of accepted attempts) and "cost". A
        value is None if it is not defined or not known.
    """
    items = finished_by_item(attempts)
    finished = [attempt for each in items.values() for attempt in each]
    passed = {id_: [attempt.accepted for attempt in each] for id_, each in items.items()}
    return {
        "items": len(items),
        "attempts": len(finished),
        "open attempts": len(attempts) - len(finished),
        "accepted": sum(attempt.accepted for attempt in finished),
        "TOP": {str(k): _top(passed, k) for k in range(1, most_attempts + 1)},
        "AVG": average_pass_rate(list(passed.values())) if passed else None,
        "rounds": by_round(finished, most_rounds),
        "skipped rounds": sum(len(attempt.skipped) for attempt in finished),
        "verdicts": _verdicts(finished),
        **patch_statistics(items),
        "95% intervals": _intervals(items, passed, most_attempts),
        **_cost(attempts, price),
    }


def _top(passed: Mapping[str, Sequence[bool]], k: int) -> float | None:
    enough = [each for each in passed.values() if len(each) >= k]
    return pass_at_k(enough, k) if enough else None


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


def _verdicts(finished: Sequence[AttemptResult]) -> dict[str, dict[str, int]]:
    """Count how often the model's programs got each verdict, such as "WA" (wrong answer).

    Summaries of code have no verdicts, so they are not counted.

    Args:
        finished: The finished attempts.

    Returns:
        A dict from each verdict to two counts: "all replies", and "final replies" (the last reply of each
        attempt).
    """
    last = Counter(attempt.rounds[-1].verdict for attempt in finished if attempt.rounds)
    every = Counter(one.verdict for attempt in finished for one in attempt.rounds)
    return {
        verdict: {"final replies": last[verdict], "all replies": count}
        for verdict, count in every.most_common()
        if verdict is not None
    }


def patch_statistics(items: Items) -> dict[str, Any]:
    """Compute how large a model's patches are, relative to the programs and to the known fixes.

    A patch turns an incorrect program into the model's final program. A fix turns the incorrect program into
    a known correct program. The edits of a patch or a fix are the nodes of the syntax tree that it changes.

    All values except "RPSR published" use only the attempts whose final program passes all tests.

    Args:
        items: The finished attempts at each incorrect program (item), by the id of the item.

    Returns:
        These values by name; None if a mean is not defined:

        - "RPS" (relative patch size): The mean of (edits of the patch) / (nodes of the incorrect program's
          tree).
        - "RPSR" (relative patch size ratio): The mean of (edits of the patch) / (edits of the fix).
        - "RPSR, counted": The number of attempts in the mean "RPSR".
        - "RPSR, left out, fix at distance 0": The number of attempts that are left out of the mean "RPSR",
          because the fix has 0 edits (its tree equals the tree of the incorrect program).
        - "RPSR, left out, no fix": The number of attempts that are left out because no fix is known, or
          because a program is too large to be measured.
        - "RPSR published": RPSR as in the code of the repair method CREF. The relative size of a patch or a
          fix is (edits) / (nodes of the larger of the two trees). For each item, the relative sizes of the
          patches of all finished attempts are averaged. The sum of these means over the items is divided by
          the sum of the relative sizes of the fixes. Items with an unknown size are left out.
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
    """Return the RPSR (relative patch size ratio) of an attempt to repair a program.

    RPSR is (edits of the model's patch) / (edits of the fix). The patch turns the incorrect program into the
    model's program. The fix turns the incorrect program into the known correct program. The edits are the
    edited nodes of the syntax tree.

    Returns:
        The ratio; None if no fix is known, if the fix has no edits, or if a program is too large to be
        measured.
    """
    made, wanted = attempt.patch, attempt.fix_patch
    return made.edits / wanted.edits if made and wanted and wanted.edits else None


def _intervals(
    items: Items, passed: Mapping[str, Sequence[bool]], most_attempts: int
) -> dict[str, list[float] | None]:
    """Compute the 95% bootstrap intervals of AVG, TOP-k and RPSR, by resampling of the items (programs).

    - AVG is the share of accepted attempts. An attempt is accepted if the model's last program passes all
      tests, or if its last summary of code has a high enough score.
    - TOP-k is pass@k: the probability that at least one of k attempts is accepted.
    - RPSR (relative patch size ratio) is the mean, over accepted attempts, of (size of the model's change to
      the program) / (size of the known correct change).

    Args:
        items: The finished attempts at each item, by the id of the item.
        passed: For each item, whether each of its finished attempts was accepted.
        most_attempts: The largest k for which TOP-k is computed.

    Returns:
        The lower and the upper end of each interval, by name ("AVG", "TOP-1", ..., "RPSR"). An interval is
        None if the value is not defined, or if there are fewer than two items.
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
    if len(items) < 2:
        return dict.fromkeys(sums)
    values = np.array(list(sums.values()), np.float64)  # (figures, items, 2)
    means = resampled_means(
        np.concatenate([values[:, :, 0], values[:, :, 1]]), np.random.default_rng(SEED)
    ).reshape(-1, 2, len(sums))
    return {name: _interval(means[:, 0, i], means[:, 1, i]) for i, name in enumerate(sums)}


def _interval(numerators: NDArray[np.float64], denominators: NDArray[np.float64]) -> list[float] | None:
    """Return the 95% bootstrap interval of a statistic that is a quotient, such as a mean (sum / number).

    Args:
        numerators: (n,) numerator of the statistic in each of n resamples.
        denominators: (n,) denominator in each resample. Resamples with denominator 0 are left out.

    Returns:
        The lower and the upper end; None if no resample is left.
    """
    some = denominators > 0
    return list(interval(numerators[some] / denominators[some])) if some.any() else None


def _cost(attempts: Sequence[AttemptResult], price: Price | None) -> dict[str, Any]:
    """Count the requests to the model, and sum their tokens and costs.

    Args:
        attempts: The attempts, finished or not. Each round of an attempt is one request.
        price: The price of the model's tokens; None if it is not known.

    Returns:
        A dict with these keys:

        - "requests": The number of requests.
        - "prompt tokens", "completion tokens": The tokens of all requests and of all replies. None if the
          endpoint did not report the tokens of every request.
        - "cost": The total cost. None if a number of tokens is None, or if the price is not known.
    """
    rounds = [one for attempt in attempts for one in attempt.rounds]
    prompt = _sum([one.prompt_tokens for one in rounds])
    completion = _sum([one.completion_tokens for one in rounds])
    return {
        "requests": len(rounds),
        "prompt tokens": prompt,
        "completion tokens": completion,
        "cost": price.of(prompt, completion) if price else None,
    }


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
