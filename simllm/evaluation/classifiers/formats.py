"""Predictions as other programs write them: `simllm generate`, pandas, the code of the ECSER-LLM thesis."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pandas import DataFrame

# What `simllm generate` writes of a question and its reply, beside the columns of a prediction. The request
# and the log-probabilities are large, and no figure needs them.
FAILURE = "failure"  # why a request failed for good
ORIGINAL = "original"  # the item of which `simllm perturb text` made a variant
_DROPPED = ("request", "logprobs")
# The thesis's code writes results_SPLIT_PROMPT.csv, and results_SPLIT_PROMPT_ATTACK.csv for an attack.
_THESIS_FILE = re.compile(r"results_(train|val|test)_(.+)\.csv(?:\.gz)?")
_THESIS_SPLITS = {"train": "train", "val": "validation", "test": "test"}


def without_request(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of `simllm generate` without its request and its log-probabilities; others unchanged."""
    is_reply = isinstance(row.get("request"), dict) and "reply" in row
    return {name: value for name, value in row.items() if not (is_reply and name in _DROPPED)}


def rename(rows: DataFrame) -> DataFrame:
    """Give columns their names in `Predictions` where other programs have names of their own.

    `label` and `pred` together are the true and the predicted class, as in the thesis. A column without a
    name, as pandas writes its index, is the item; so is `original`, for rows that have it.
    """
    names = {}
    if {"label", "pred"} <= set(rows) and not {"gold", "predicted"} & set(rows):
        names = {"label": "gold", "pred": "predicted"}
    if "" in rows and "item" not in rows:
        names[""] = "item"
    rows = rows.rename(columns=names)
    if ORIGINAL in rows and "item" in rows and "variant" in rows:
        is_variant = rows[ORIGINAL].notna() & rows["variant"].notna()
        rows["item"] = rows["item"].where(~is_variant, rows[ORIGINAL])
    return rows


def facts_of_name(path: Path, paths: Collection[Path], columns: Collection[str]) -> dict[str, str]:
    """Return the classifier, split and variant in the name of a file of the thesis; nothing for other files.

    `results_test_persona_charswap.csv` is the variant charswap of persona, if `results_test_persona.csv` is
    among the `paths`, and otherwise a classifier of its own.
    """
    found = _THESIS_FILE.fullmatch(path.name)
    if found is None or not {"message", "n", "test"} <= set(columns):
        return {}
    part, name = found.groups()
    known = {own[2] for other in paths if (own := _THESIS_FILE.fullmatch(other.name)) and own[1] == part}
    base, _, attack = name.rpartition("_")
    facts = {"classifier": name, "split": _THESIS_SPLITS[part]}
    return facts | {"classifier": base, "variant": attack} if base in known else facts
