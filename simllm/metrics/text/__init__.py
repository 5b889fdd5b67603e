"""Known metrics for texts, such as BLEU and BERTScore, as baselines for the learned metric.

A function `load_NAME` imports the metric's library and returns a `TextScorer`. If the library or a file is
missing, it raises `UnavailableError`; the metric is then left out of results, and does not count as 0.
"""
