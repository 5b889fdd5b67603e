"""The table of all built-in metrics but the learned one.

Importing this table stays fast: a metric's module is imported when the metric is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
        argument: What a user writes after `=`. A metric for texts needs its argument: "MODEL", or "CORPUS"
            (a file of texts). For a metric for code it is optional: a word such as "multiset", "FILE" for any
            path, or "NODES" for any positive number of syntax nodes. Empty if there is no argument.
        libraries: The Python packages whose versions can change scores.
        for_code: Whether the metric scores code instead of texts.
        needs_source: Whether the metric needs the code before it was edited.
        lower_is_better: Whether lower scores are better, as for the size of an edit.
        is_published: Whether the argument may be "as-published".
    """

    load: str
    options: Mapping[str, Any] = field(default_factory=dict)
    argument: str = ""
    libraries: tuple[str, ...] = ()
    for_code: bool = False
    needs_source: bool = False
    lower_is_better: bool = False
    is_published: bool = False

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


def _text(load: str, *libraries: str, argument: str = "", **options: Any) -> MetricSpec:
    return MetricSpec(f"text.{load}", options, argument, libraries)


def _code(load: str, argument: str = "", is_published: bool = False, **options: Any) -> MetricSpec:
    return MetricSpec(f"code.{load}", options, argument, for_code=True, is_published=is_published)


def _edit(load: str, argument: str = "", lower_is_better: bool = False, **options: Any) -> MetricSpec:
    """Describe a metric that compares how candidate and reference edit the source."""
    spec = _code(load, argument, not lower_is_better, **options)
    return replace(spec, needs_source=True, lower_is_better=lower_is_better)


METRICS = {
    "bleu": _text("words:load_bleu", "nltk", weights=(0.25,) * 4),
    "bleu-1": _text("words:load_bleu", "nltk", weights=(1,)),
    "bleu-2": _text("words:load_bleu", "nltk", weights=(0, 1)),
    "bleu-3": _text("words:load_bleu", "nltk", weights=(0, 0, 1)),
    "bleu-4": _text("words:load_bleu", "nltk", weights=(0, 0, 0, 1)),
    "bleu-smoothed": _text("words:load_smoothed_bleu", "sacrebleu"),
    "meteor": _text("meteor:load_meteor", "nltk"),
    "rouge-1": _text("words:load_rouge", "rouge-score", "nltk", kind="rouge1"),
    "rouge-2": _text("words:load_rouge", "rouge-score", "nltk", kind="rouge2"),
    "rouge-l": _text("words:load_rouge", "rouge-score", "nltk", kind="rougeL"),
    "rouge-w": _text("words:load_rouge_w", "rouge-score", "nltk"),
    "jaccard": _text("words:load_jaccard"),
    "tf-idf": _text("words:load_tf_idf", "scikit-learn"),
    "chrf": _text("words:load_chrf", "sacrebleu"),
    "word-vectors": _text("embeddings:load_word_vectors", "scipy", argument="CORPUS"),
    "sentence-bert": _text(
        "embeddings:load_sentence_bert", "sentence-transformers", "transformers", argument="MODEL"
    ),
    "bertscore": _text("embeddings:load_bertscore", "bert-score", "transformers", argument="MODEL"),
    "exact-match": _code("similarity:load_exact_match", is_published=True),
    "lemod": _edit("similarity:load_lemod", "multiset", part="f1"),
    "lemod-precision": _edit("similarity:load_lemod", "multiset", part="precision"),
    "lemod-recall": _edit("similarity:load_lemod", "multiset", part="recall"),
    "token-bleu": _code("bleu:load_bleu", is_published=True, of_edits=False),
    "bleu-diff": _edit("bleu:load_bleu", of_edits=True),
    "crystalbleu": _code("bleu:load_crystalbleu", FILE, is_published=True, of_edits=False),
    "crystalbleu-diff": _edit("bleu:load_crystalbleu", FILE, of_edits=True),
    "edit-similarity": _code("similarity:load_edit_similarity", "indel"),
    "code-chrf": _code("similarity:load_chrf"),
    "tree-similarity": _code("trees:load_tree_similarity", NODES),
    "codebleu": _code("codebleu:load_codebleu"),
    "rps": _edit("trees:load_patch_size", NODES, lower_is_better=True, ratio=False),
    "rpsr": _edit("trees:load_patch_size", NODES, lower_is_better=True, ratio=True),
}
