"""Reader of files with the results of tools on original code and on rewritten code.

A tool is a program that reads code and writes an answer, such as a summary or corrected code. A result is a
single answer, called a draw, or two numbers: how many answers of a tool are right, and how many answers it
gave. The value `arm` tells how the code was rewritten: it is the name of a rewriting rule if this rule alone
was used, and empty if all rules were used together.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import read_json_lines

SIDES = ("original", "transformed")
_DRAW_FIELDS = ("id", "side", "draw", "success", "output", "crashed")
_COUNT_FIELDS = ("id", *SIDES)
_MOST_DRAWS = 1_000_000  # of an item, so that sums and tests stay exact
_FACT_FIELDS = ("model", "arm", "nll", "group", "rules", "unchanged")


@dataclass
class Draw:
    """One answer that a tool gave about a piece of code: about its original version or a rewritten version.

    Attributes:
        id: The id of the piece of code.
        side: "original" or "transformed": the code that the answer is about.
        number: A number that distinguishes several answers of the tool about the same code.
        success: Whether the answer is right; None if the tool crashed, or the answer is not judged yet.
        output: The answer; None if only the success is known, or the tool crashed.
        model: The name of the tool; empty if there is only one.
        arm: The name of the rewriting rule, if the code was rewritten by a single rule; empty if it was
            rewritten by all rules together.
        where: The file and the line of the answer, for error messages.
    """

    id: str
    side: str
    number: int
    success: bool | None = None
    output: str | None = None
    model: str = ""
    arm: str = ""
    where: str = ""


@dataclass(frozen=True)
class ItemFacts:
    """Properties of an item: a piece of code in an original and in a rewritten form.

    The rewritten code is called the variant. The properties do not depend on the answers of tools.

    Attributes:
        nll: The mean negative log-likelihood per token of the original code, in nats; None if unknown.
        group: A label of the item from the input file, such as "long"; empty if it has none. If the items
            have different labels, the study also gives results for each label.
        rules: The names of the rewriting rules that changed the code of the variant; None if unknown.
        unchanged: Whether the variant equals the original.
    """

    nll: float | None = None
    group: str = ""
    rules: tuple[str, ...] | None = None
    unchanged: bool = False


@dataclass
class Recorded:
    """The results of tools on items (pieces of code), as read from a file.

    The code of an item is rewritten by all rewriting rules together, or by one rule alone. Below, "rule" is
    the name of the one rule, or empty for all rules together.

    Attributes:
        draws: The answers that are recorded one by one.
        counts: The answers that are recorded only as counts: a dict from (name of the tool, rule, id of the
            item) to two pairs (number of successes, number of answers). The first pair is for the original
            code, the second for the rewritten code.
        facts: A dict from (rule, id of the item) to properties of the item, such as its group (a label like
            "long"), and of its rewritten code, such as whether it equals the original.
        warnings: Sentences about what was left out or changed before the results were recorded.
        restored: The number of answers into which old names were put back; None if this was not asked for.
    """

    draws: list[Draw] = field(default_factory=list)
    counts: dict[tuple[str, str, str], tuple[tuple[int, int], tuple[int, int]]] = field(default_factory=dict)
    facts: dict[tuple[str, str], ItemFacts] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    restored: int | None = None

    def facts_about(self, arm: str, item: str) -> ItemFacts:
        """Return the properties of an item (a piece of code) and of one of its variants (rewritten versions).

        Each variant was made by one rewriting rule, or by all rules together. Two properties are the same for
        all variants of an item: the negative log-likelihood of the original code, and the group of the item
        (a label such as "long"). If one of these two is not recorded with the selected variant, the value
        that is recorded with an empty `arm` is used.

        Args:
            arm: Selects the variant: the name of the single rule that made it, or empty for the variant made
                by all rules together.
            item: The id of the item.
        """
        own, common = (self.facts.get((name, item), ItemFacts()) for name in (arm, ""))
        nll = common.nll if own.nll is None else own.nll
        return replace(own, nll=nll, group=own.group or common.group)


def read_recorded(file: Path | str) -> Recorded:
    """Read the results of tools on original and rewritten code.

    The file has JSON objects, one in each line. Each line has the `id` of an item (piece of code), and either
    one answer of a tool or counts of its answers:

    - A line with an answer has the key `side` ("original" or "transformed"), and at least one of `success`
      (true or false), `output` (the answer) and `crashed` (true if the tool gave no answer). Its key `draw`
      distinguishes several answers about the same code (default 0).
    - A line with counts has the keys `original` and `transformed`; each value is a list [successes, answers].

    Any line may have the keys `model` (the name of the tool) and `arm` (the name of the rewriting rule, if
    only one was used). It may also have properties of the item: `nll` (negative log-likelihood of the
    original code), `group` (a label such as "long"), `rules` (the rules that changed the code) and
    `unchanged` (whether the rewritten code equals the original). The properties of an item may be spread over
    its lines. If two lines of an item give different values for a property, the later line counts.

    Args:
        file: The file.

    Raises:
        InputError: A line is wrong, and the message names the line; or the file has no results.
    """
    found = Recorded()
    places: dict[tuple[object, ...], str] = {}
    for where, row in read_json_lines.objects(Path(file)):
        _check_fields(row, where)
        for name in ("id", *(name for name in ("model", "arm", "group") if row.get(name) is not None)):
            read_json_lines.text_under(row, name, where)
        model, arm, item = row.get("model") or "", row.get("arm") or "", row["id"]
        key: tuple[object, ...] = (model, arm, item)
        if "side" in row:
            found.draws.append(draw := _read_draw(row, model, arm, where))
            key = (*key, draw.side, draw.number)
        else:
            found.counts[model, arm, item] = (_count(row, SIDES[0], where), _count(row, SIDES[1], where))
        if key in places:
            raise InputError(f"{where}: repeats {places[key]}")
        places[key] = where
        if facts := _read_facts(row, where):
            found.facts[arm, item] = replace(found.facts.get((arm, item), ItemFacts()), **facts)
    if not places:
        raise InputError(f"{file}: no results in it")
    return found


def _check_fields(row: Mapping[str, Any], where: str) -> None:
    """Check the keys of a line from a file with the results of tools.

    Args:
        row: The JSON object in the line.
        where: The place of the line, for error messages.

    Raises:
        InputError: A key looks misspelt. Or the line has neither the key `side` (for a single answer) nor
            both keys `original` and `transformed` (for counts of answers).
    """
    known = (*_DRAW_FIELDS, *SIDES, *_FACT_FIELDS)
    for name in row:
        if name not in known and (close := difflib.get_close_matches(name, known, 1, 0.8)):
            raise InputError(f"{where}: unknown field {name}; did you mean {close[0]}?")
    if "side" not in row and not set(SIDES) <= row.keys():
        one, both = ", ".join(_DRAW_FIELDS[:3]), ", ".join(_COUNT_FIELDS)
        raise InputError(f"{where}: expected {one} and success, or {both}")


def _read_draw(row: dict[str, Any], model: str, arm: str, where: str) -> Draw:
    """Read a draw (one answer of a tool) from a JSON row.

    Args:
        row: The JSON object.
        model: The name of the tool.
        arm: The name of the rewriting rule, if the code was rewritten by a single rule; otherwise empty.
        where: The place of the row, for errors.

    Raises:
        InputError: A value is wrong.
    """
    if row["side"] not in SIDES:
        raise InputError(f"{where}: expected the side original or transformed, not {row['side']!r}")
    number, success, output = row.get("draw", 0), row.get("success"), row.get("output")
    if type(number) is not int:
        raise InputError(f"{where}: expected a number under draw, not {number!r}")
    if row.get("crashed") is True:
        success = output = None
    elif isinstance(success, int) and success in (0, 1):
        success = bool(success)
    elif success is not None:
        raise InputError(f"{where}: expected true or false under success, not {success!r}")
    elif not isinstance(output, str):
        raise InputError(f"{where}: expected success, output or crashed")
    return Draw(row["id"], row["side"], number, success, output, model, arm, where)


def _count(row: dict[str, Any], side: str, where: str) -> tuple[int, int]:
    """Read a tool's numbers of successes and of draws (answers) from a JSON object.

    Args:
        row: The JSON object.
        side: The key of the two numbers: "original" or "transformed".
        where: The place of the object in its file, for error messages.

    Raises:
        InputError: The value is not a list [successes, draws] of whole numbers. Or there are no draws, or
            more successes than draws.
    """
    value = row[side]
    is_pair = isinstance(value, list) and len(value) == 2 and all(type(part) is int for part in value)
    if not is_pair or not 0 <= value[0] <= value[1] or not 1 <= value[1] <= _MOST_DRAWS:
        shown = repr(value) if len(repr(value)) < 60 else "a longer value"
        raise InputError(f"{where}: expected [successes, draws] under {side}, such as [7, 10], not {shown}")
    return value[0], value[1]


def _read_facts(row: dict[str, Any], where: str) -> dict[str, Any]:
    """Read the properties of an item from a line of a file with the results of tools.

    An item is a piece of code in an original and in a rewritten form. Examples of its properties are `group`
    (a label such as "long") and `rules` (the names of the rules that rewrote the code).

    Args:
        row: The JSON object in the line.
        where: The place of the line, for error messages.

    Returns:
        The properties that the line has: a dict from the names of attributes of `ItemFacts` to their values.

    Raises:
        InputError: The value of a property has the wrong type.
    """
    nll, rules = read_nll(row, where), row.get("rules")
    if rules is not None and not (isinstance(rules, list) and all(isinstance(rule, str) for rule in rules)):
        raise InputError(f"{where}: expected a list of names under rules, not {rules!r}")
    if type(row.get("unchanged", False)) not in (bool, type(None)):
        raise InputError(f"{where}: expected true or false under unchanged, not {row['unchanged']!r}")
    facts = {
        "nll": nll,
        "group": row.get("group") or None,
        "rules": None if rules is None else tuple(rules),
        "unchanged": row.get("unchanged"),
    }
    return {name: value for name, value in facts.items() if value is not None}


def read_nll(row: Mapping[str, Any], where: str) -> float | None:
    """Read the negative log-likelihood of an item from a JSON object; None if it has none.

    Raises:
        InputError: The value is not a finite number.
    """
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
