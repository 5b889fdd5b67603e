"""Module of the Hugging Face library `evaluate`, loaded with `evaluate.load(FOLDER)` without the network."""

from __future__ import annotations

from functools import cache
from typing import Any

import datasets
import evaluate

from simllm import SimLLM
from simllm.scoring.scores import text_list

_load = cache(SimLLM)

_DESCRIPTION = "How close in meaning generated summaries of source code are to reference summaries."
_CITATION = """\
@article{jin2024simllm,
  author  = {Jin, Xin and Lin, Zhiqiang},
  title   = {{SimLLM}: Calculating Semantic Similarity in Code Summaries using a Large Language Model-Based
             Approach},
  journal = {Proceedings of the ACM on Software Engineering},
  volume  = {1},
  number  = {FSE},
  year    = {2024},
  doi     = {10.1145/3660769}
}"""
_INPUTS = """
Args:
    predictions: n texts.
    references: n texts, one for each prediction.
    options: Arguments of `simllm.SimLLM`, such as `model` and `mode`.

Returns:
    mean_score: The mean of the scores.
    scores: n scores from -1 to 1; equal texts score 1.
    signature: Text that names everything that can change a score, to report with the mean.
"""


class SimllmScore(evaluate.Metric):
    """The scores of n texts and their mean."""

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": text, "references": text}),
        )

    def add_batch(self, *, predictions: Any = None, references: Any = None, **others: Any) -> None:
        """Add n texts and their references."""
        # The library would take a lone string for a list of its characters.
        for name, texts in (("predictions", predictions), ("references", references)):
            text_list(name, texts)
        super().add_batch(predictions=predictions, references=references, **others)

    def _compute(self, predictions: list[str], references: list[str], **options: Any) -> dict[str, Any]:
        return _load(**options).compute(predictions=predictions, references=references)
