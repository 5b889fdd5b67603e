"""Metamorphic studies: what rewrites that keep the behaviour of code do to a tool's success."""

from simllm.evaluation.metamorphic.recorded_draws import read_recorded
from simllm.evaluation.metamorphic.tool_study import MetamorphicStudy, evaluate, read_variants

__all__ = ["MetamorphicStudy", "evaluate", "read_recorded", "read_variants"]
