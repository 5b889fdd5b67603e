"""Metamorphic studies: whether a tool succeeds less often on code that is rewritten without new behaviour."""

from simllm.evaluation.metamorphic.recorded_draws import read_recorded
from simllm.evaluation.metamorphic.tool_study import MetamorphicStudy, evaluate, read_variants

__all__ = ["MetamorphicStudy", "evaluate", "read_recorded", "read_variants"]
