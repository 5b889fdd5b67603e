"""The data of the report about scored text pairs, as JSON for the script of the HTML page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from simllm.analysis.run_report.scored_run import ScoredRun
from simllm.analysis.run_report.shown_pairs import choose_pairs
from simllm.io import tables

LONGEST_SHOWN = 2_000  # characters of a text that the page shows


def script_data(run: ScoredRun, fields: Mapping[str, Sequence[str]]) -> str:
    """Format the data of the report as JSON, escaped for a script element of the HTML page.

    The data are the pairs that the page shows, and the names of the columns, systems and fields.

    Args:
        run: n scored pairs.
        fields: A dict from each field's name to its n values, by which the page can filter the pairs.
    """
    chosen = choose_pairs(run)
    data = {
        "columns": list(run.scores),
        "same": list(run.same),
        "systems": list(run.candidates) if run.has_systems else [],
        "lowerIsBetter": run.lower_is_better,
        "worstGoodScore": round(run.worst_good_score, 4),
        "longest": LONGEST_SHOWN,
        "fields": list(fields),
        "pairs": [_pair(run, fields, int(i)) for i in chosen],
        "total": len(run),
    }
    text = json.dumps(tables.finite(data), separators=(",", ":"))  # ASCII: also no line separators of Unicode
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def is_cut(run: ScoredRun, i: int) -> bool:
    """Return whether a text of pair `i` is too long for the page, which shows only 2,000 characters of it."""
    return any(len(texts[i]) > LONGEST_SHOWN for texts in (run.references, *run.candidates.values()))


def _pair(run: ScoredRun, fields: Mapping[str, Sequence[str]], i: int) -> dict[str, Any]:
    """Return the data of pair `i` (counted from 0) for the page's script, as a JSON object."""
    return {
        "number": i + 1,
        **({"id": _cut_id(run.ids[i])} if run.ids is not None else {}),
        "scores": [round(float(values[i]), 4) for values in run.scores.values()],
        "same": [round(float(values[i]), 4) for values in run.same.values()],
        "overlap": round(float(run.overlap[i]), 4),
        "surprise": round(float(run.surprise[i]), 4),
        "changed": [bool(values[i]) for values in run.changed.values()],
        **_changed_by(run, i),
        **({"cut": True} if is_cut(run, i) else {}),
        "empty": bool(run.empty[i]),
        **({"unrelated": True} if run.any_unrelated[i] else {}),
        **({"long": True} if run.long[i] else {}),
        "groups": [values[i] for values in fields.values()],
        "candidates": [_cut(texts[i]) for texts in run.candidates.values()],
        "reference": _cut(run.references[i]),
    }


def _changed_by(run: ScoredRun, i: int) -> dict[str, Any]:
    """Return the words that make the candidate of pair `i` differ in meaning from its reference.

    Returns:
        A dict to be merged into the pair's JSON object; empty if the pair was not searched for such words.
        Otherwise, the only key is "changedBy". Its value is a list with one element for each column of
        `run.changed` (a metric or a system): the words found, or None if the pair was not searched for this
        metric or system.
    """
    words = [run.changed_by.get(name, {}).get(i) for name in run.changed]
    return {} if all(own is None for own in words) else {"changedBy": words}


def _cut_id(value: Any) -> Any:
    """Return a pair's id as the page shows it; an id of more than 2,000 characters is cut.

    Large whole numbers are replaced by text, because JavaScript would round them. If a long id is not a text
    (but, for example, a list), it is converted to JSON text before it is cut.
    """
    exact = _exact(value)
    text = exact if isinstance(exact, str) else json.dumps(exact)
    return _cut(text) if len(text) > LONGEST_SHOWN else exact


def _exact(value: Any) -> Any:
    """Replace the large whole numbers in a JSON value by text, because JavaScript would round them.

    A number is large if its absolute value is 2^53 or more.
    """
    if isinstance(value, list):
        return [_exact(item) for item in value]
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    return str(value) if isinstance(value, int) and abs(value) >= 2**53 else value


def _cut(text: str) -> str:
    """Cut a text after 2,000 characters; append the full length to a text that was cut."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]} … ({len(text):,} characters)"
