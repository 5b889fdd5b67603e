"""Evaluation of metrics, of classifiers, and of tools that edit or read code.

Metrics are evaluated by their correlation with human ratings, by a contrast set, and by their robustness to
edits of a text.
"""
