"""Evaluation of text similarity metrics, of classifiers, and of tools that edit or read code.

Metrics are evaluated in three ways. Their scores are correlated with human ratings. A contrast set tests
whether a metric scores a rewording higher than a text with another meaning. A test of robustness edits
summaries: the score should fall little if an edit keeps the meaning, and much if it changes the meaning.
"""
