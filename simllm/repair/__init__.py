"""Repair of programs by a language model, in conversations of several rounds.

The model gets an incorrect program, and replies with a corrected program, which is tested. If a test fails,
the next round tells the model what is wrong, and the model tries again. In the same way, a model can write
summaries of code, which a metric judges.
"""

from simllm.repair.repair_api import run

__all__ = ["run"]
