"""The table `CODE_METRICS` of simllm's metrics for code: their names, options and arguments.

The class `CodeMetric`, which computes the scores, is in `code_metric.py`; importing this table stays fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# With this argument, a metric of Sheikhaei et al. is computed exactly as by their published code.
AS_PUBLISHED = "as-published"
PUBLISHED = (
    *("exact-match", "lemod", "lemod-precision", "lemod-recall", "token-bleu", "bleu-diff"),
    *("crystalbleu", "crystalbleu-diff"),
)
FILE, NODES = "FILE", "NODES"  # arguments that stand for a path, and for a number of syntax nodes


@dataclass(frozen=True)
class CodeMetricKind:
    """Description of a metric for code, from which `code_metric.load` loads the metric.

    Attributes:
        adapter: The name of a function in `simllm.metrics.code.code_metric` that returns
            `CodeMetric.prepare`.
        options: Keyword arguments for this function.
        argument: What a user may write after `=`, such as "multiset" in `lemod=multiset`. "FILE" stands for
            any path, "NODES" for any positive number of syntax nodes, and "" for nothing. The metrics in
            `PUBLISHED` also allow `as-published`.
    """

    adapter: str
    options: Mapping[str, Any] = field(default_factory=dict)
    argument: str = ""
    needs_source: bool = False
    lower_is_better: bool = False


CODE_METRICS = {
    "exact-match": CodeMetricKind("exact_match"),
    "lemod": CodeMetricKind("lemod", {"part": "f1"}, "multiset", needs_source=True),
    "lemod-precision": CodeMetricKind("lemod", {"part": "precision"}, "multiset", needs_source=True),
    "lemod-recall": CodeMetricKind("lemod", {"part": "recall"}, "multiset", needs_source=True),
    "token-bleu": CodeMetricKind("token_bleu", {"of_edits": False}),
    "bleu-diff": CodeMetricKind("token_bleu", {"of_edits": True}, needs_source=True),
    "crystalbleu": CodeMetricKind("crystalbleu", {"of_edits": False}, FILE),
    "crystalbleu-diff": CodeMetricKind("crystalbleu", {"of_edits": True}, FILE, needs_source=True),
    "edit-similarity": CodeMetricKind("edit_similarity", argument="indel"),
    "code-chrf": CodeMetricKind("code_chrf"),
    "tree-similarity": CodeMetricKind("tree_similarity", argument=NODES),
    "codebleu": CodeMetricKind("codebleu"),
    "rps": CodeMetricKind("patch_size", {"ratio": False}, NODES, needs_source=True, lower_is_better=True),
    "rpsr": CodeMetricKind("patch_size", {"ratio": True}, NODES, needs_source=True, lower_is_better=True),
}
