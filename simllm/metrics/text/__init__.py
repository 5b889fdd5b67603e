"""Known metrics for texts, such as BLEU and BERTScore, as baselines for the learned metric.

Most of the metrics are computed by well-known libraries. The module of a metric has a function `load`, which
imports the library and returns a scoring function. If the library or a file is missing, `load` raises
`UnavailableError`, whose message says what to do. A metric that cannot be loaded is left out of results; it
does not count as 0. Some modules also have a function `data`, which returns the paths of the files on which
the scores depend, such as those of a model.
"""
