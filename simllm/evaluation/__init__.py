"""Evaluation of metrics: rated pairs, correlation with people, studies, contrast set, robustness."""
