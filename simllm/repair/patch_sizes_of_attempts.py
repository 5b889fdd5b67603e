"""The sizes of a model's patches to incorrect programs, and the statistics RPS and RPSR of these sizes.

RPS is the relative patch size: the edits of a patch, divided by the size of the program. RPSR is the relative
patch size ratio: the edits of a patch, divided by the edits of the known fix.
"""

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
    """Add the sizes of two patches to the result of an attempt, if it is an attempt to repair a program.

    The first patch turns the incorrect program into the model's final program. The second patch turns the
    incorrect program into the known fix.

    Args:
        attempt: The result of the attempt.
        item: The incorrect program, with the known fix if there is one.
        patches: The cache of patch sizes.

    Returns:
        The result with the sizes. The result of an unfinished attempt, or of an attempt to summarize code, is
        returned unchanged.
    """
    if item.reference is not None or attempt.open or not attempt.rounds:
        return attempt
    made = _size_of_patch(item, attempt.rounds[-1].code or "", patches)
    return replace(
        attempt, patch=made, fix_patch=None if item.fix is None else _size_of_patch(item, item.fix, patches)
    )


def _size_of_patch(item: RepairItem, code: str, patches: KeptValues) -> PatchSize | None:
    """Return the size of the patch that turns an incorrect program into another program.

    The patch is measured on the syntax trees of the two programs: how many nodes are edited, and how many
    nodes the trees have. A size that was measured before is read from the cache.

    Args:
        item: The item, which has the incorrect program.
        code: The other program.
        patches: The cache of patch sizes.

    Returns:
        The size; None if a syntax tree is too large, or parsing takes too long.
    """

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
    if min(found.edits, found.nodes - 1, found.larger - 1) < 0:
        raise InputError("patches.jsonl: a stored size is negative, or of an empty tree")
    return found


def patch_statistics(items: AttemptsByItem) -> dict[str, Any]:
    """Compute how large a model's patches are, relative to the programs and to the known fixes.

    A patch turns an incorrect program into the model's final program. A fix turns the incorrect program into
    a known correct program. "Edits" is the number of syntax-tree nodes that a patch or a fix changes.

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
        - "RPSR published": RPSR as in the code of the repair method CREF. It is (sum of A) / (sum of B) over
          all items. A is the mean relative size of an item's patches, even of patches that fail a test. B is
          the relative size of the item's fix. The relative size of a patch or fix is (edits) / (nodes). The
          nodes are those of the incorrect program's tree or of the changed program's tree, whichever is
          larger. Items with an unknown size are left out.
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
    model's program. The fix turns the incorrect program into the known correct program. "Edits" is the number
    of syntax-tree nodes that are changed.

    Returns:
        The ratio; None if no fix is known, if the fix has no edits, or if a program is too large to be
        measured.
    """
    made, wanted = attempt.patch, attempt.fix_patch
    return made.edits / wanted.edits if made and wanted and wanted.edits else None
