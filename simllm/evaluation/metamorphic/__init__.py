"""Metamorphic studies: they test whether a tool succeeds less often after its input code is rewritten.

A tool is a program that reads code and writes an answer, such as a summary or corrected code. The rewriting
does not change what the code does.
"""

from simllm.evaluation.metamorphic.read_tool_results import read_recorded
from simllm.evaluation.metamorphic.tool_study import MetamorphicStudy, evaluate, read_variants

__all__ = ["MetamorphicStudy", "evaluate", "read_recorded", "read_variants"]
