"""Metrics for code summaries: a common interface, loading by name, and known metrics such as BLEU.

Examples:
    >>> from simllm import metrics
    >>> metrics.load("jaccard").score([metrics.Example("adds two lists", "adds lists")]).values
    array([0.66666667])
"""

from simllm.metrics.metric_interface import Example, FunctionMetric, Metric
from simllm.metrics.registry import load, names

__all__ = ["Example", "FunctionMetric", "Metric", "load", "names"]
