"""Metrics with one interface: the learned metric, known metrics such as BLEU, and metrics of other packages.

Terms:

- A metric scores an *example*: a *candidate* (a text or code to judge) with its *reference*.
- The *source* of an example is the code before an edit; candidate and reference are two edited versions of
  it.
- A *signature* is a text that names everything that can change a score: options, versions of libraries, and
  hashes of data files.
- A metric is named `name` or `name=argument`, such as `bleu` or `word-vectors=CORPUS`.

Examples:
    >>> from simllm import metrics
    >>> metrics.load("jaccard").score([metrics.Example("adds two lists", "adds lists")]).values
    array([0.66666667])
"""

from simllm.metrics.interface import Example, FunctionMetric, Metric
from simllm.metrics.registry import load, names

__all__ = ["Example", "FunctionMetric", "Metric", "load", "names"]
