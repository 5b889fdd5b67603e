"""Repair of programs by a language model, in conversations of several rounds.

The model gets an incorrect program. Its reply is tested. If a test fails, the next round tells the model what
is wrong, and the model tries again. Summaries of code can be improved in the same way.
"""

from simllm.repair.repair_api import run

__all__ = ["run"]
