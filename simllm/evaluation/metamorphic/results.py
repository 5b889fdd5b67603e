"""Results of tools: their reader, and counts of successes by item.

A file has single answers (draws), or counts of answers.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import reading

SIDES = ("original", "transformed")
# What becomes of an answer: it passes the tests, fails them, does not compile, or runs for too long.
PLAUSIBLE, FAILING, UNCOMPILABLE, LATE = OUTCOMES = ("plausible", "failing", "uncompilable", "timeout")
_DRAW_FIELDS = ("id", "side", "draw", "variant", "outcome", "success", "output", "crashed")
_COUNT_FIELDS = ("id", *SIDES)
_MOST_DRAWS = 1_000_000  # of an item, so that sums and tests stay exact
_FACT_FIELDS = ("model", "arm", "nll", "group", "rules", "counts", "unchanged")


@dataclass
class Draw:
    """One answer of a tool.

    Attributes:
        id: The id of the item.
        side: "original" or "transformed".
        number: A number that distinguishes several answers of the tool about the same code.
        success: None if the tool crashed, or the answer is not judged yet.
        output: The answer; None if only the success is known, or the tool crashed.
        where: The file and the line of the answer, for error messages.
        variant: The number of the variant among those of the item; 0 for an original.
        outcome: One of `OUTCOMES`; None if only the success is known, or nothing.
    """

    id: str
    side: str
    number: int
    success: bool | None = None
    output: str | None = None
    model: str = ""
    arm: str = ""
    where: str = ""
    variant: int = 0
    outcome: str | None = None


@dataclass(frozen=True)
class ItemFacts:
    """Properties of an item and one variant that do not depend on tools; see `ItemOutcome`."""

    nll: float | None = None
    group: str = ""
    rules: tuple[str, ...] | None = None
    unchanged: bool = False


@dataclass
class Recorded:
    """The results of tools, as read from a file.

    Attributes:
        draws: The answers that are recorded one by one.
        counts: The answers that are recorded only as counts. The key is (tool, arm, id of the item). The
            values are the numbers of successes and of answers: on the original, then on the variant.
        facts: Properties by (arm, id of the item).
        rewritten: How many places each rule rewrote, by (id of the item, number of the variant); for variants
            by all rules.
        warnings: Sentences about what was left out or changed before the results were recorded.
        restored: The number of answers into which old names were put back; None if this was not asked for.
    """

    draws: list[Draw] = field(default_factory=list)
    counts: dict[tuple[str, str, str], tuple[tuple[int, int], tuple[int, int]]] = field(default_factory=dict)
    facts: dict[tuple[str, str], ItemFacts] = field(default_factory=dict)
    rewritten: dict[tuple[str, int], dict[str, int]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    restored: int | None = None

    def facts_about(self, arm: str, item: str) -> ItemFacts:
        """Return the properties of an item with its variant of an arm."""
        # NLL and group belong to the item, so that lines without an arm hold for all its variants.
        own, common = (self.facts.get((name, item), ItemFacts()) for name in (arm, ""))
        nll = common.nll if own.nll is None else own.nll
        return replace(own, nll=nll, group=own.group or common.group)


def read_recorded(file: Path | str) -> Recorded:
    """Read the results of tools from a file with a JSON object in each line.

    Each line has the `id` of an item. A line with an answer has the keys `side`, `draw` and `variant`
    (numbers, default 0), and at least one of `outcome` (see `OUTCOMES`), `success`, `output` and `crashed`
    (true if there was no answer). A line with counts has the keys `original` and `transformed`, each a list
    [successes, answers]. Any line may have `model` and `arm`, and `nll`, `group`, `rules`, `counts` (places
    by rule) and `unchanged`, which may be spread over the lines of an item; the last value counts.
    """
    found = Recorded()
    places: dict[tuple[object, ...], str] = {}
    for where, row in reading.objects(Path(file)):
        _check_fields(row, where)
        for name in ("id", *(name for name in ("model", "arm", "group") if row.get(name) is not None)):
            reading.text_under(row, name, where)
        model, arm, item = row.get("model") or "", row.get("arm") or "", row["id"]
        key: tuple[object, ...] = (model, arm, item)
        if "side" in row:
            found.draws.append(draw := _read_draw(row, model, arm, where))
            key = (*key, draw.side, draw.number, draw.variant)
        else:
            found.counts[model, arm, item] = (_count(row, SIDES[0], where), _count(row, SIDES[1], where))
        if key in places:
            raise InputError(f"{where}: repeats {places[key]}")
        places[key] = where
        if (counts := _read_rewritten(row, where)) is not None and not arm:
            found.rewritten[item, row.get("variant", 0)] = counts
        if facts := _read_facts(row, where):
            found.facts[arm, item] = replace(found.facts.get((arm, item), ItemFacts()), **facts)
    if not places:
        raise InputError(f"{file}: no results in it")
    return found


def _check_fields(row: Mapping[str, Any], where: str) -> None:
    """Refuse keys that look misspelt, and lines with neither an answer nor counts."""
    # Other unknown fields are allowed: a file may have more for its author's own use.
    known = (*_DRAW_FIELDS, *SIDES, *_FACT_FIELDS)
    for name in row:
        if name not in known and (close := difflib.get_close_matches(name, known, 1, 0.8)):
            raise InputError(f"{where}: unknown field {name}; did you mean {close[0]}?")
    if "side" not in row and not set(SIDES) <= row.keys():
        one, both = ", ".join(_DRAW_FIELDS[:3]), ", ".join(_COUNT_FIELDS)
        raise InputError(f"{where}: expected {one} and success, or {both}")


def _read_draw(row: dict[str, Any], model: str, arm: str, where: str) -> Draw:
    """Read a draw from a line."""
    if row["side"] not in SIDES:
        raise InputError(f"{where}: expected the side original or transformed, not {row['side']!r}")
    number, success, output = row.get("draw", 0), row.get("success"), row.get("output")
    variant, outcome = row.get("variant", 0), row.get("outcome")
    for name, value in (("draw", number), ("variant", variant)):
        # Not isinstance, which takes true for 1.
        if type(value) is not int:
            raise InputError(f"{where}: expected a number under {name}, not {value!r}")
    if outcome is not None and outcome not in OUTCOMES:
        raise InputError(f"{where}: expected one of {', '.join(OUTCOMES)} under outcome, not {outcome!r}")
    # A crash counts before everything else in the line; it may have half an output.
    if row.get("crashed") is True:
        success = output = outcome = None
    elif outcome is not None:
        if success not in (None, outcome == PLAUSIBLE):
            raise InputError(f"{where}: the outcome {outcome} contradicts the success {success!r}")
        success = outcome == PLAUSIBLE
    elif isinstance(success, int) and success in (0, 1):
        success = bool(success)
    elif success is not None:
        raise InputError(f"{where}: expected true or false under success, not {success!r}")
    elif not isinstance(output, str):
        raise InputError(f"{where}: expected outcome, success, output or crashed")
    if row["side"] == SIDES[0] and variant:
        raise InputError(f"{where}: an original has no number under variant")
    return Draw(row["id"], row["side"], number, success, output, model, arm, where, variant, outcome)


def _count(row: dict[str, Any], side: str, where: str) -> tuple[int, int]:
    """Read [successes, draws] of a side."""
    value = row[side]
    is_pair = isinstance(value, list) and len(value) == 2 and all(type(part) is int for part in value)
    if not is_pair or not 0 <= value[0] <= value[1] or not 1 <= value[1] <= _MOST_DRAWS:
        shown = repr(value) if len(repr(value)) < 60 else "a longer value"
        raise InputError(f"{where}: expected [successes, draws] under {side}, such as [7, 10], not {shown}")
    return value[0], value[1]


def _read_rewritten(row: Mapping[str, Any], where: str) -> dict[str, int] | None:
    """Read how many places each rule rewrote; None if a line does not tell."""
    counts = row.get("counts")
    if counts is None:
        return None
    if not isinstance(counts, dict) or not all(type(n) is int and n >= 0 for n in counts.values()):
        raise InputError(f"{where}: expected numbers of places by rule under counts")
    return counts


def _read_facts(row: dict[str, Any], where: str) -> dict[str, Any]:
    """Read the attributes of `ItemFacts` that a line has."""
    nll, rules = read_nll(row, where), row.get("rules")
    if rules is not None and not (isinstance(rules, list) and all(isinstance(rule, str) for rule in rules)):
        raise InputError(f"{where}: expected a list of names under rules, not {rules!r}")
    if type(row.get("unchanged", False)) not in (bool, type(None)):
        raise InputError(f"{where}: expected true or false under unchanged, not {row['unchanged']!r}")
    if rules is None and row.get("counts"):
        rules = [rule for rule, count in row["counts"].items() if count]
    facts = {
        "nll": nll,
        "group": row.get("group") or None,
        "rules": None if rules is None else tuple(rules),
        "unchanged": row.get("unchanged"),
    }
    return {name: value for name, value in facts.items() if value is not None}


def read_nll(row: Mapping[str, Any], where: str) -> float | None:
    """Read the NLL, a finite number, from a JSON object; None if it has none."""
    nll = row.get("nll")
    if nll is None:
        return None
    try:
        if type(nll) in (int, float) and math.isfinite(nll):
            return float(nll)
    except OverflowError:
        pass  # an integer that no float can hold
    shown = repr(nll) if len(str(nll)) < 60 else "a longer value"
    raise InputError(f"{where}: expected a number under nll, not {shown}")


@dataclass(frozen=True)
class ItemOutcome:
    """Counts of a tool's successes on one item.

    Attributes:
        original: The number of successes, and the number of answers, about the original.
        transformed: The same two numbers about the variant.
        nll: None if unknown.
        group: A label of the item from the input file, such as "long"; empty if it has none.
        rules: The names of the rules that changed the variant; None if unknown.
        unchanged: Whether the variant equals the original.
        variants: The number of variants, whose answers count together.
    """

    id: str
    original: tuple[int, int]
    transformed: tuple[int, int]
    nll: float | None = None
    group: str = ""
    rules: tuple[str, ...] | None = None
    unchanged: bool = False
    variants: int = 1

    @property
    def rates(self) -> tuple[float, float]:
        """The success rates: on the original, then on the variant."""
        return self.original[0] / self.original[1], self.transformed[0] / self.transformed[1]

    @property
    def difference(self) -> float:
        """The difference of the success rates, from -1 to 1."""
        original, transformed = self.rates
        return transformed - original

    @property
    def table(self) -> list[list[int]]:
        """The counts [successes, failures]: on the original, then on the variant."""
        return [[done, draws - done] for done, draws in (self.original, self.transformed)]

    @property
    def is_balanced(self) -> bool:
        """Whether the answers on both sides together include a success and a failure."""
        # The thesis keeps only such items.
        return self.rates not in ((0.0, 0.0), (1.0, 1.0))


def count_successes(
    recorded: Recorded, arm: str = ""
) -> tuple[dict[str, list[ItemOutcome]], dict[str, dict[str, int]]]:
    """Count the successes of each tool on each item, for variants of one arm, and its crashes by side.

    All draws must be judged: a `success` of None counts as a crash, which is in no count of successes. An
    item is skipped if the tool crashed each time on a side, or if `arm` is empty and the tool was run only on
    variants of single rules. Otherwise, an item with one side is an `InputError`.
    """
    counts: dict[tuple[str, str], dict[str, tuple[int, int]]] = {
        (model, item): dict(zip(SIDES, pair, strict=True))
        for (model, own, item), pair in recorded.counts.items()
        if own == arm
    }
    crashes: dict[str, dict[str, int]] = {model: dict.fromkeys(SIDES, 0) for model, _ in counts}
    seen: dict[tuple[str, str], dict[str, str]] = {}
    variants: dict[tuple[str, str], set[int]] = {}
    for draw in _with_originals(recorded.draws, arm):
        sides = counts.setdefault((draw.model, draw.id), {})
        seen.setdefault((draw.model, draw.id), {})[draw.side] = draw.where
        lost = crashes.setdefault(draw.model, dict.fromkeys(SIDES, 0))
        if draw.side == SIDES[1]:
            variants.setdefault((draw.model, draw.id), set()).add(draw.variant)
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
            facts = dict(vars(recorded.facts_about(arm, item)))
            facts["variants"] = len(variants.get((model, item), "1"))
            outcomes[model].append(ItemOutcome(item, sides[SIDES[0]], sides[SIDES[1]], **facts))
    return outcomes, crashes


def count_outcomes(draws: Iterable[Draw], model: str) -> dict[str, dict[str, int]]:
    """Count the draws of a tool with each outcome by side, with variants by all rules; empty without any."""
    counts = {side: dict.fromkeys(OUTCOMES, 0) for side in SIDES}
    for draw in _with_originals([draw for draw in draws if draw.model == model], ""):
        if draw.outcome is not None:
            counts[draw.side][draw.outcome] += 1
    return counts if any(any(own.values()) for own in counts.values()) else {}


def _with_originals(draws: Iterable[Draw], arm: str) -> Iterable[Draw]:
    """Select the draws of an arm, with the draws about the originals to which its variants are compared."""
    draws = list(draws)
    # The original code is the same for all arms: variants of an arm without originals of its own are compared
    # with the originals of an empty arm.
    own = {(draw.model, draw.id) for draw in draws if draw.arm == arm and draw.side == SIDES[1]}
    has_originals = {(d.model, d.id) for d in draws if d.arm == arm and d.side == SIDES[0]}
    # An original whose only variants are of single rules has no counterpart among those of all rules.
    dropped = set() if arm else {(d.model, d.id) for d in draws if d.arm and d.side == SIDES[1]} - own
    for draw in draws:
        key = (draw.model, draw.id)
        if (draw.arm == arm and key not in dropped) or (
            draw.side == SIDES[0] and draw.arm == "" and key in own - has_originals
        ):
            yield draw
