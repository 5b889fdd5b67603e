"""Studies of metrics, with a report: how well the scores of metrics agree with human ratings.

A study answers the research questions of the SIMLLM paper on one or more sets of rated pairs. *Variants* are
other poolings and similarities of the learned metric, and *checkpoints* are its models during a training.
Metrics whose correlations do not differ significantly form a *cluster* and share a *rank*, from 1. The
*ceiling* is the highest correlation with the mean ratings that can be expected of a metric; the less the
raters agree, the lower it is.
"""
