"""Metamorphic studies: they test whether a tool succeeds less often after its input code is rewritten.

The rewriting does not change what the code does. The modules share these words:

- A tool is a program that reads code and writes an answer, such as a summary or corrected code. Its name is
  the `model` of a line; the name is empty if there is only one tool.
- An item is a piece of code, the original. A variant is the rewritten code of an item; it was made by all
  rewriting rules together, or by one rule. The `arm` is the name of this one rule, empty for all together.
- The side is "original" or "transformed": whether an answer is about the original or about the variant.
- A draw is one answer of a tool. A success is a right answer; a crash is a run without an answer.
- A judge decides which answers are successes.
- The success rate is the share of successes. A difference is the success rate on the variant minus that on
  the original, so that it is negative if rewriting harms.
- The NLL is the mean negative log-likelihood per token of the original code under a language model, in nats.
- "The thesis" is M. de Koning, "Metamorphic Testing for LLM-based Code Repair" (2025).
"""

from simllm.evaluation.metamorphic.results import read_recorded
from simllm.evaluation.metamorphic.study import MetamorphicStudy, evaluate, read_variants

__all__ = ["MetamorphicStudy", "evaluate", "read_recorded", "read_variants"]
