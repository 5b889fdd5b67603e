"""The table of all built-in metrics but the learned one.

Importing this table stays fast: a metric's module is imported when the metric is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

# With this argument, a metric of Sheikhaei et al. is computed exactly as by their published code.
AS_PUBLISHED = "as-published"
FILE, NODES = "FILE", "NODES"  # arguments that stand for a path, and for a number of syntax nodes


@dataclass(frozen=True)
class MetricSpec:
    """A built-in metric: what loads it, and what its users must know.

    Attributes:
        load: The function that loads the metric, in the notation of entry points, in `simllm.metrics`. It
            gets the argument, if the metric has one, and the options. It returns a `TextScorer`,
            or for code a `CodeScorer`.
        options: Keyword arguments for this function.
        argument: What a user writes after `=`. A metric for texts needs its argument: "MODEL", "CORPUS"
            (a file of texts) or "FILE". For a metric for code it is optional: a word such as "multiset",
            "FILE" for any path, or "NODES" for any positive number of syntax nodes. Empty if there is no
            argument.
        libraries: The Python packages whose versions can change scores.
        needs_source: Whether the metric needs the code before it was edited.
        lower_is_better: Whether lower scores are better, as for the size of an edit.
        is_published: Whether the argument may be "as-published".
        is_judge: Whether the metric asks a language model. It reads texts as they are, and `load` returns
            a whole metric.
    """

    load: str
    options: Mapping[str, Any] = field(default_factory=dict)
    argument: str = ""
    libraries: tuple[str, ...] = ()
    needs_source: bool = False
    lower_is_better: bool = False
    is_published: bool = False
    is_judge: bool = False

    @property
    def for_code(self) -> bool:
        """Whether the metric scores code instead of texts."""
        return self.load.startswith("code.")

    def allows(self, argument: str) -> bool:
        """Return whether a user may write this argument, which is empty if the user wrote none."""
        if not self.for_code:
            return bool(argument) == bool(self.argument)
        if self.is_published and argument == AS_PUBLISHED:
            return True
        if self.argument == NODES and argument:
            return argument.isdecimal() and int(argument) > 0
        return not argument or self.argument in (argument, FILE)

    def scorer(self, name: str, argument: str) -> Any:
        """Load the scoring functions of the metric with this name and argument."""
        if self.is_published and argument == AS_PUBLISHED:
            return resolve_name("simllm.metrics.code.sheikhaei:load")(name)
        arguments = [argument] if self.argument else []
        return resolve_name(f"simllm.metrics.{self.load}")(*arguments, **self.options)


_ROUGE = ("rouge-score", "nltk")
_EDIT: dict[str, Any] = {"needs_source": True, "is_published": True}
_SIZE: dict[str, Any] = {"needs_source": True, "lower_is_better": True}
TEXT = {
    "bleu": MetricSpec("text.words:load_bleu", {"weights": (0.25,) * 4}, libraries=("nltk",)),
    "bleu-1": MetricSpec("text.words:load_bleu", {"weights": (1,)}, libraries=("nltk",)),
    "bleu-2": MetricSpec("text.words:load_bleu", {"weights": (0, 1)}, libraries=("nltk",)),
    "bleu-3": MetricSpec("text.words:load_bleu", {"weights": (0, 0, 1)}, libraries=("nltk",)),
    "bleu-4": MetricSpec("text.words:load_bleu", {"weights": (0, 0, 0, 1)}, libraries=("nltk",)),
    "bleu-smoothed": MetricSpec("text.words:load_smoothed_bleu", libraries=("sacrebleu",)),
    "meteor": MetricSpec("text.meteor:load_meteor", libraries=("nltk",)),
    "rouge-1": MetricSpec("text.words:load_rouge", {"kind": "rouge1"}, libraries=_ROUGE),
    "rouge-2": MetricSpec("text.words:load_rouge", {"kind": "rouge2"}, libraries=_ROUGE),
    "rouge-l": MetricSpec("text.words:load_rouge", {"kind": "rougeL"}, libraries=_ROUGE),
    "rouge-w": MetricSpec("text.words:load_rouge_w", libraries=_ROUGE),
    "jaccard": MetricSpec("text.words:load_jaccard"),
    "tf-idf": MetricSpec("text.words:load_tf_idf", libraries=("scikit-learn",)),
    "chrf": MetricSpec("text.words:load_chrf", libraries=("sacrebleu",)),
    "word-vectors": MetricSpec("text.models:load_word_vectors", argument="CORPUS", libraries=("scipy",)),
    "sentence-bert": MetricSpec(
        "text.models:load_sentence_bert",
        argument="MODEL",
        libraries=("sentence-transformers", "transformers"),
    ),
    "bertscore": MetricSpec(
        "text.models:load_bertscore", argument="MODEL", libraries=("bert-score", "transformers")
    ),
    "nli": MetricSpec("text.models:load_nli", argument="MODEL", libraries=("onnxruntime", "tokenizers")),
}
CODE = {
    "exact-match": MetricSpec("code.similarity:load_exact_match", is_published=True),
    "lemod": MetricSpec("code.similarity:load_lemod", {"part": "f1"}, "multiset", **_EDIT),
    "lemod-precision": MetricSpec("code.similarity:load_lemod", {"part": "precision"}, "multiset", **_EDIT),
    "lemod-recall": MetricSpec("code.similarity:load_lemod", {"part": "recall"}, "multiset", **_EDIT),
    "token-bleu": MetricSpec("code.bleu:load_bleu", {"of_edits": False}, is_published=True),
    "bleu-diff": MetricSpec("code.bleu:load_bleu", {"of_edits": True}, **_EDIT),
    "crystalbleu": MetricSpec("code.bleu:load_crystalbleu", {"of_edits": False}, FILE, is_published=True),
    "crystalbleu-diff": MetricSpec("code.bleu:load_crystalbleu", {"of_edits": True}, FILE, **_EDIT),
    "edit-similarity": MetricSpec("code.similarity:load_edit_similarity", argument="indel"),
    "code-chrf": MetricSpec("code.similarity:load_chrf"),
    "tree-similarity": MetricSpec("code.trees:load_tree_similarity", argument=NODES),
    "codebleu": MetricSpec("code.codebleu:load_codebleu"),
    "rps": MetricSpec("code.trees:load_patch_size", {"ratio": False}, NODES, **_SIZE),
    "rpsr": MetricSpec("code.trees:load_patch_size", {"ratio": True}, NODES, **_SIZE),
}
# Apart from the metrics for texts, because "all metrics" must not ask an endpoint.
JUDGE = {"judge": MetricSpec("judge.pointwise:load", argument=FILE, is_judge=True)}
METRICS = TEXT | CODE | JUDGE
