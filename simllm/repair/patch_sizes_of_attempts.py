"""The sizes of patches, and the statistics RPS and RPSR of these sizes."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from simllm.errors import InputError
from simllm.io.strict_dataclass_loading import build
from simllm.llm.endpoint import request_key
from simllm.llm.records import KeptValues
from simllm.metrics.code.relative_patch_size import PatchSize, patch_size, ratio_of_sizes
from simllm.repair.attempt_results import AttemptResult, AttemptsByItem
from simllm.repair.repair_items import RepairItem

RPSR = {"mean": "RPSR", "published": "RPSR published"}  # the names of its two definitions in the summary


def measure_patches(attempt: AttemptResult, item: RepairItem, patches: KeptValues) -> AttemptResult:
    """Add the sizes of the patch and of the change to the fix to the result of an attempt.

    The result of an open attempt, or of an attempt to summarize code, is returned unchanged.
    """
    if item.reference is not None or attempt.open or not attempt.rounds:
        return attempt
    # A reply without code counts as an empty program: with None, "RPSR published" would leave out the item.
    made = _size_of_patch(item, attempt.rounds[-1].code or "", patches)
    return replace(
        attempt, patch=made, fix_patch=None if item.fix is None else _size_of_patch(item, item.fix, patches)
    )


def _size_of_patch(item: RepairItem, code: str, patches: KeptValues) -> PatchSize | None:
    """Return the size of the patch that turns an item's program into another; None if a tree is too large."""

    def measure() -> dict[str, int] | None:
        try:
            size = patch_size(item.code, code, item.language or "")
        except TimeoutError:  # the parser gave up
            return None
        return asdict(size) if size else None

    value = patches.get(request_key({"language": item.language, "code": item.code, "other": code}), measure)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InputError(f"patches.jsonl: a stored size must be a JSON object, not {str(value)[:40]}")
    found = build(PatchSize, value, "patches.jsonl: a stored size")
    # A tree has at least its root.
    if min(found.edits, found.nodes - 1, found.larger - 1) < 0:
        raise InputError("patches.jsonl: a stored size is negative, or of an empty tree")
    return found


def patch_statistics(items: AttemptsByItem) -> dict[str, Any]:
    """Compute RPS and RPSR over the finished attempts at each item; None if a mean is not defined.

    "RPS" and "RPSR" are means over accepted attempts. "RPSR, left out, no fix" counts programs that are too
    large to be measured, too. "RPSR published" is RPSR as in the code of the repair method CREF, from all
    attempts: `ratio_of_sizes` has the formula.
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
    """Return the RPSR of an attempt; None without a fix, with a fix of no edits, or if a program is too
    large.
    """
    made, wanted = attempt.patch, attempt.fix_patch
    return made.edits / wanted.edits if made and wanted and wanted.edits else None
