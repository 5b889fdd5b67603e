"""The summary of a run, `summary.json`: settings and statistics; and the comparison of runs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simllm.analysis.comparison import Comparison, compare_scores
from simllm.errors import InputError
from simllm.io import tables
from simllm.io.reading import read_json
from simllm.llm.limits import Price
from simllm.repair.items import RepairItem
from simllm.repair.results import (
    OVERFLOW,
    REFUSED,
    AttemptResult,
    by_round,
    compute_intervals,
    finished_by_item,
    patch_ratio,
    patch_statistics,
)
from simllm.repair.settings import RunSettings
from simllm.stats.classification import average_pass_rate, pass_at_k

SUMMARY = "summary.json"
NO_GROUP, NO_TIER = "(no group)", "(no tier)"


def summarize(
    attempts: Sequence[AttemptResult],
    items: Sequence[RepairItem],
    settings: RunSettings,
    most_rounds: int,
    about: dict[str, Any],
    dropped: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Make the content of `summary.json`.

    `most_rounds` is the number of rounds of the strategy. `about` has the single key "judge", which describes
    the judge. "figures" in the result has the statistics of all attempts, and "groups" and "tiers" those of
    each group and tier of items. `dropped` has the ids of dropped items and of the equal ones that were kept.
    """

    def of(chosen: Sequence[AttemptResult]) -> dict[str, Any]:
        return compute_statistics(chosen, settings.attempts, most_rounds, settings.price)

    def has(name: str) -> bool:
        return any(getattr(item, name) for item in items)

    def by(name_of: Mapping[str, str]) -> dict[str, Any]:
        names = dict.fromkeys(name_of.values())
        return {name: of([one for one in attempts if name_of[one.item] == name]) for name in names}

    in_order = sorted(items, key=lambda item: _natural(item.tier))
    open_attempts = [attempt for attempt in attempts if attempt.open is not None]
    figures = of(attempts)
    return {
        "run": settings.label,
        "model": settings.model,
        "strategy": settings.strategy,
        "with": settings.parts,
        "attempts": settings.attempts,
        "rounds": most_rounds,
        "items": len(items),
        "dropped items": dict(dropped or {}),
        "complete": not open_attempts,
        "open attempts": len(open_attempts),
        "first open attempt": _first(open_attempts),
        "contained": None if settings.judge else not settings.unsafe,
        **about,
        "warnings": [
            *_about_items(items, dropped or {}),
            *_warnings(figures, attempts),
            *_about_patches(attempts, items, settings.trees),
        ],
        "figures": figures,
        "groups": by({item.id: item.group or NO_GROUP for item in items if has("group")}),
        "tiers": by({item.id: item.tier or NO_TIER for item in in_order if has("tier")}),
    }


def _natural(name: str | None) -> tuple[bool, list[tuple[int, str]]]:
    """Sort T10 after T9, and items without a name last."""
    # int() refuses very long numbers.
    words = re.findall(r"\d{1,1000}|\D+", name or "")
    return not name, [(int(word), "") if word.isdecimal() else (-1, word) for word in words]


def _replies(attempts: Sequence[AttemptResult]) -> dict[str, Any]:
    """Count the replies that say little about the model, and name the ambiguous ones."""
    rounds = [(attempt, one) for attempt in attempts for one in attempt.rounds]
    ambiguous = [
        f"item {attempt.item}, attempt {attempt.attempt}, round {one.round}"
        for attempt, one in rounds
        if one.is_ambiguous
    ]
    return {
        "all": len(rounds),
        "empty": sum(one.reply is not None and not one.reply.strip() for _, one in rounds),
        "without code": sum(one.verdict == "NC" for _, one in rounds),
        "cut off": sum(one.is_cut for _, one in rounds),
        "beyond the context": sum(one.verdict == OVERFLOW for _, one in rounds),
        "refused": sum(one.verdict == REFUSED for _, one in rounds),
        "ambiguous": len(ambiguous),
        "ambiguous, named": ambiguous,
    }


def _about_items(items: Sequence[RepairItem], dropped: Mapping[str, str]) -> list[str]:
    """Return sentences about items that are left out, or have no tier."""
    found = []
    if dropped:
        named = [f"{one} (as {kept})" for one, kept in dropped.items()]
        which = tables.list_some(named, 3)
        found.append(
            f"{tables.format_count(len(dropped), 'item')} dropped, because the incorrect program equals that "
            f"of an earlier item up to white space: {which}"
        )
    without = sum(not item.tier for item in items)
    if 0 < without < len(items):
        found.append(f"{without:,} of {len(items):,} items have no tier")
    return found


def _warnings(figures: Mapping[str, Any], attempts: Sequence[AttemptResult]) -> list[str]:
    """Return sentences about everything that makes the figures mean little."""
    found, replies, verdicts = [], figures["replies"], figures["verdicts"]
    if not figures["attempts"]:
        found.append("no attempt is finished, so that there are no figures")
    elif figures["open attempts"]:
        left_out = f"{figures['open attempts']:,} of {len(attempts):,} attempts"
        found.append(f"the figures leave out {left_out}, which have no reply or no verdict")
    for kind, effect in (
        ("empty", "an empty reply has no code and no summary"),
        ("without code", "they count as not accepted (NC), whatever the model meant"),
        ("cut off", "they reach the largest number of tokens, and a program without its end seldom works"),
        ("beyond the context", "the conversation was too long for the model, and counts as not accepted"),
        ("refused", "the endpoint never answers the request, which counts as not accepted"),
        ("ambiguous", "several blocks of code fit equally well, and the last one is judged"),
    ):
        if count := replies[kind]:
            names = replies["ambiguous, named"] if kind == "ambiguous" else []
            shown = f" ({'; '.join(names[:3])}{'; …' if len(names) > 3 else ''})" if names else ""
            which = f"all {count:,}" if count == replies["all"] else f"{count:,} of {replies['all']:,}"
            found.append(f"{which} replies are {kind}: {effect}{shown}")
    does_compile = (verdicts.get("CE") or {}).get("all replies") != replies["all"]
    if replies["all"] and not does_compile and not replies["cut off"]:
        found.append("no reply compiles; does the compiler here know the language version of the items?")
    return found


def _about_patches(attempts: Sequence[AttemptResult], items: Sequence[RepairItem], trees: str) -> list[str]:
    """Return sentences about programs of which RPSR says nothing, or little."""
    programs = {item.id: item for item in items if item.reference is None}
    fixed = [id_ for id_, item in programs.items() if item.fix is not None]
    found = []
    if 0 < len(fixed) < len(programs):
        without = len(programs) - len(fixed)
        found.append(f"{without:,} of {len(programs):,} items have no fix: RPSR leaves them out")
    made = [one for one in attempts if one.open is None and one.rounds and one.item in programs]
    if unmeasured := [
        one for one in made
        if one.patch is None or (one.fix_patch is None and programs[one.item].fix is not None)
    ]:  # fmt: skip
        reason = "a tree is too large" + (", or libclang fails" if trees == "libclang" else "")
        found.append(
            f"{len(unmeasured):,} of {len(made):,} patches are not measured, because {reason}: RPS and RPSR "
            "leave them out"
        )
    # With libclang, the roots of two trees always differ.
    same = {one.item: None for one in made if one.fix_patch and one.fix_patch.edits == 1}
    if trees == "libclang" and same:
        which = tables.list_some(same, 3)
        found.append(
            f"{len(same):,} of {len(fixed):,} fixes are invisible in the trees of libclang ({which}): their "
            "only edit is that of the root, so that RPSR says little"
        )
    return found


def _first(open_attempts: Sequence[AttemptResult]) -> str | None:
    """Describe the first open attempt, such as "item 7, attempt 2: the run has stopped"."""
    return next((f"item {one.item}, attempt {one.attempt}: {one.open}" for one in open_attempts), None)


def compute_statistics(
    attempts: Sequence[AttemptResult], most_attempts: int, most_rounds: int, price: Price | None
) -> dict[str, Any]:
    """Compute the statistics of attempts, which are sorted by item; a value is None if it is not defined or
    known.

    Open attempts count only in "open attempts" and in the requests, tokens and costs.
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
        "replies": _replies(attempts),
        **patch_statistics(items),
        "95% intervals": compute_intervals(items, passed, most_attempts),
        **tokens_and_cost(attempts, price),
    }


def _top(passed: Mapping[str, Sequence[bool]], k: int) -> float | None:
    enough = [each for each in passed.values() if len(each) >= k]
    return pass_at_k(enough, k) if enough else None


def _verdicts(finished: Sequence[AttemptResult]) -> dict[str, dict[str, int]]:
    """Count for each verdict all replies, and the last replies of attempts ("final replies")."""
    last = Counter(attempt.rounds[-1].verdict for attempt in finished if attempt.rounds)
    every = Counter(one.verdict for attempt in finished for one in attempt.rounds)
    return {
        verdict: {"final replies": last[verdict], "all replies": count}
        for verdict, count in every.most_common()
        if verdict is not None
    }


def to_json(summary: dict[str, Any]) -> str:
    """Format a summary as JSON text; NaN and infinite numbers become null."""
    return json.dumps(tables.finite(summary), indent=1, ensure_ascii=False) + "\n"


def read_summary(run: Path) -> dict[str, Any]:
    """Read `summary.json` in the folder of a run."""
    if not (run / SUMMARY).is_file():
        raise InputError(f"{run}: has no {SUMMARY}; the run has not ended, and its command continues it")
    found = read_json(run / SUMMARY)
    if missing := [name for name in ("complete", "judge", "figures", "groups") if name not in found]:
        raise InputError(f"{run / SUMMARY}: missing key {missing[0]}")
    for name in ("judge", "figures", "groups"):
        if not isinstance(found[name], dict):
            raise InputError(f"{run / SUMMARY}: expected a JSON object under {name}")
    return found


def tokens_and_cost(attempts: Sequence[AttemptResult], price: Price | None) -> dict[str, Any]:
    """Count the requests, and sum their tokens and costs, in open attempts, too.

    A sum of tokens is None if the endpoint did not report the number for every request. The cost is None if a
    sum or the price is None.
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


_Attempts = Sequence[AttemptResult]
_Figure = Callable[[_Attempts], float | None]  # takes the finished attempts at one item; None if undefined


def compare_runs(runs: Mapping[str, _Attempts]) -> dict[str, Comparison]:
    """Compare runs with the same items by AVG, TOP-k and RPSR; the result is empty with fewer than two runs.

    k is the number of attempts at each item, or the smallest such number if the runs differ. A figure is
    compared on the items for which every run defines it, and left out if there are none.
    """
    if len(runs) < 2:
        return {}
    ids = {name: {attempt.item for attempt in attempts} for name, attempts in runs.items()}
    first = next(iter(ids))
    for name, found in ids.items():
        if found != ids[first]:
            raise InputError(f"runs {first!r} and {name!r} have different items; they cannot be compared")
    # A TOP-k is comparable only for the same k, which every run must have.
    most = min(max(attempt.attempt for attempt in attempts) for attempts in runs.values())
    by_figure: dict[str, _Figure] = {"AVG": lambda each: average_pass_rate([_passed(each)])}
    # TOP-1 equals AVG.
    if most > 1:
        by_figure[f"TOP-{most}"] = lambda each: _top_of_item(each, most)
    by_figure["RPSR"] = _mean_ratio
    items = {name: finished_by_item(attempts) for name, attempts in runs.items()}
    comparisons = {}
    for name, figure in by_figure.items():
        values = {
            run: {id_: value for id_, each in found.items() if (value := figure(each)) is not None}
            for run, found in items.items()
        }
        common = [id_ for id_ in items[first] if all(id_ in found for found in values.values())]
        if common:
            scores = {run: np.array([found[id_] for id_ in common]) for run, found in values.items()}
            comparisons[name] = compare_scores(scores, name)
    return comparisons


def _passed(each: _Attempts) -> list[bool]:
    return [attempt.accepted for attempt in each]


def _top_of_item(each: _Attempts, k: int) -> float | None:
    return pass_at_k([_passed(each)], k) if len(each) >= k else None


def _mean_ratio(each: _Attempts) -> float | None:
    """Return the mean RPSR of the accepted attempts at one item; None if none has an RPSR."""
    ratios = [ratio for one in each if one.accepted and (ratio := patch_ratio(one)) is not None]
    return sum(ratios) / len(ratios) if ratios else None
