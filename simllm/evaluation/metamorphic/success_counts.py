"""Counts of a tool's right answers (successes) about original code and about the same code rewritten.

A tool is a program that reads code and writes an answer, such as a summary or corrected code. Each piece of
code is called an item.
"""

from __future__ import annotations

from collections.abc import Iterable

from simllm.errors import InputError
from simllm.evaluation.metamorphic.item_outcome import ItemOutcome
from simllm.evaluation.metamorphic.read_tool_results import SIDES, Draw, Recorded


def count_successes(
    recorded: Recorded, arm: str = ""
) -> tuple[dict[str, list[ItemOutcome]], dict[str, dict[str, int]]]:
    """Count the successes of each tool on the original code and on the rewritten code of each item.

    A tool is a program that reads code and writes an answer, such as a summary or corrected code. A success
    is a right answer. An item is a piece of code. It is rewritten by all rewriting rules together, or by one
    rule alone. The argument `arm` selects one of these ways of rewriting. The rewritten code is called the
    variant.

    For a tool, an item is skipped in two cases:

    1. The tool crashed each time on the original, or each time on the variant.
    2. `arm` selects all rules together, but the tool was run only on code that one rule alone rewrote.

    Args:
        recorded: The results of the tools. All answers must already be judged right or wrong. A `Draw` whose
            `success` is None counts as a crash.
        arm: The way of rewriting: the name of a single rewriting rule; empty for all rules together.

    Returns:
        Two dicts, both with the names of the tools as keys. The first has a list of the tool's counts, one
        for each item that is not skipped. Crashes are not in these counts. The second has the tool's numbers
        of crashes on "original" and on "transformed" code.

    Raises:
        InputError: A tool was run only on the original of an item, or only on its variant, and the item is
            not skipped by case 2.
    """
    counts: dict[tuple[str, str], dict[str, tuple[int, int]]] = {
        (model, item): dict(zip(SIDES, pair, strict=True))
        for (model, own, item), pair in recorded.counts.items()
        if own == arm
    }
    crashes: dict[str, dict[str, int]] = {model: dict.fromkeys(SIDES, 0) for model, _ in counts}
    seen: dict[tuple[str, str], dict[str, str]] = {}
    for draw in _with_originals(recorded.draws, arm):
        sides = counts.setdefault((draw.model, draw.id), {})
        seen.setdefault((draw.model, draw.id), {})[draw.side] = draw.where
        lost = crashes.setdefault(draw.model, dict.fromkeys(SIDES, 0))
        if draw.success is None:
            lost[draw.side] += 1
        else:
            done, draws = sides.get(draw.side, (0, 0))
            sides[draw.side] = (done + draw.success, draws + 1)
    outcomes: dict[str, list[ItemOutcome]] = {model: [] for model in crashes}
    for (model, item), sides in counts.items():
        where = seen.get((model, item), dict.fromkeys(SIDES, ""))
        if missing := [side for side in SIDES if side not in where]:
            place = next(iter(where.values()))
            raise InputError(f"{place}: the item {item} has no draw of the side {missing[0]}")
        if len(sides) == len(SIDES):
            facts = vars(recorded.facts_about(arm, item))
            outcomes[model].append(ItemOutcome(item, sides[SIDES[0]], sides[SIDES[1]], **facts))
    return outcomes, crashes


def _with_originals(draws: Iterable[Draw], arm: str) -> Iterable[Draw]:
    """Select the answers of tools about original code, and about code that was rewritten in one way.

    The argument `arm` names the way of rewriting. A `Draw` is one answer of a tool about an item (piece of
    code), and its attribute `arm` names a way of rewriting, too. For each tool and item, the answers whose
    `arm` equals the argument are selected. There are two exceptions:

    - These answers are all about the rewritten code. Then the tool's answers about the original code with an
      empty `arm` are selected, too, because the original code is the same for all ways of rewriting.
    - The argument is empty, and the tool has answers about rewritten code, but only about code that a single
      rule rewrote. Then no answer is selected, because the original has no counterpart to compare with.

    Args:
        draws: The answers of tools about original and rewritten code.
        arm: The name of the rewriting rule, for code that a single rule rewrote; empty for code that all
            rules together rewrote.
    """
    draws = list(draws)
    own = {(draw.model, draw.id) for draw in draws if draw.arm == arm and draw.side == SIDES[1]}
    has_originals = {(d.model, d.id) for d in draws if d.arm == arm and d.side == SIDES[0]}
    dropped = set() if arm else {(d.model, d.id) for d in draws if d.arm and d.side == SIDES[1]} - own
    for draw in draws:
        key = (draw.model, draw.id)
        if (draw.arm == arm and key not in dropped) or (
            draw.side == SIDES[0] and draw.arm == "" and key in own - has_originals
        ):
            yield draw
