"""Shortening of very long texts and ids: the page of the score report shows only their beginning."""

from __future__ import annotations

import json
from typing import Any

from simllm.analysis.score_report.scored_pairs import ScoredPairs

LONGEST_SHOWN = 2_000  # characters of a text that the page shows


def is_cut(scored: ScoredPairs, i: int) -> bool:
    """Return whether a text of pair `i` has more characters than the score report shows (2,000)."""
    return any(len(texts[i]) > LONGEST_SHOWN for texts in scored.texts)


def cut(text: str) -> str:
    """Cut a text after 2,000 characters; append the full length to a text that was cut."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]} … ({len(text):,} characters)"


def cut_id(value: Any) -> Any:
    """Return a pair's id as the page shows it; a long id that is not a string becomes JSON and is cut."""
    exact = _exact(value)
    text = exact if isinstance(exact, str) else json.dumps(exact)
    return cut(text) if len(text) > LONGEST_SHOWN else exact


def _exact(value: Any) -> Any:
    """Replace whole numbers from 2^53 by text, because JavaScript would round them."""
    if isinstance(value, list):
        return [_exact(item) for item in value]
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    return str(value) if isinstance(value, int) and abs(value) >= 2**53 else value
