"""Evaluation of metrics: correlation with human ratings, studies, contrast set, robustness to edits."""
