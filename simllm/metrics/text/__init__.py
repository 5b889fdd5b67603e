"""Known metrics for texts, such as BLEU and BERTScore, as baselines for the learned metric.

The module of a metric has a function `load`, which imports the metric's library and returns a scoring
function. If the library or a file is missing, `load` raises `UnavailableError`; the metric is then left out
of results, and does not count as 0. A function `data` returns the paths of the files on which the scores
depend, such as those of a model; their hashes are part of the signature.
"""
