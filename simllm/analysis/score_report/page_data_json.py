"""The data of the score report as JSON, for the script of the HTML page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from simllm.analysis.score_report.cut_texts import LONGEST_SHOWN, cut, cut_id, is_cut
from simllm.analysis.score_report.sampled_pairs import choose_pairs
from simllm.analysis.score_report.scored_pairs import ScoredPairs
from simllm.io import tables


def page_data_json(scored: ScoredPairs, fields: Mapping[str, Sequence[str]]) -> str:
    """Format the pairs that the page shows, with names and thresholds, as JSON for a script element.

    `fields` has the n values of each field; the user of the page can show only the pairs with a certain
    value.
    """
    chosen = choose_pairs(scored)
    data = {
        "columns": list(scored.scores),
        "same": list(scored.same),
        "systems": list(scored.candidates) if scored.has_systems else [],
        "lowerIsBetter": scored.lower_is_better,
        "worstGoodScore": round(scored.worst_good_score, 4),
        "longest": LONGEST_SHOWN,
        "fields": list(fields),
        "pairs": [_pair(scored, fields, int(i)) for i in chosen],
        "total": len(scored),
    }
    text = json.dumps(tables.finite(data), separators=(",", ":"))  # ASCII: also no line separators of Unicode
    # A text such as "</script>" would end the script element.
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _pair(scored: ScoredPairs, fields: Mapping[str, Sequence[str]], i: int) -> dict[str, Any]:
    """Return the data of pair `i`, such as its texts and scores, as a JSON object."""
    return {
        "number": i + 1,
        **({"id": cut_id(scored.ids[i])} if scored.ids is not None else {}),
        "scores": [round(float(values[i]), 4) for values in scored.scores.values()],
        "same": [round(float(values[i]), 4) for values in scored.same.values()],
        "overlap": round(float(scored.overlap[i]), 4),
        "surprise": round(float(scored.surprise[i]), 4),
        "changed": [bool(values[i]) for values in scored.changed.values()],
        **_changed_by(scored, i),
        **({"cut": True} if is_cut(scored, i) else {}),
        "empty": bool(scored.empty[i]),
        **({"unrelated": True} if scored.any_unrelated[i] else {}),
        **({"long": True} if scored.long[i] else {}),
        "groups": [values[i] for values in fields.values()],
        "candidates": [cut(texts[i]) for texts in scored.candidates.values()],
        "reference": cut(scored.references[i]),
    }


def _changed_by(scored: ScoredPairs, i: int) -> dict[str, Any]:
    """Return {"changedBy": words of each column, None without a search}; {} if no column was searched."""
    words = [scored.changed_by.get(name, {}).get(i) for name in scored.changed]
    return {} if all(own is None for own in words) else {"changedBy": words}
