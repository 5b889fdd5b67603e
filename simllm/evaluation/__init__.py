"""Evaluation of text similarity metrics, of classifiers, and of tools that edit or read code.

Text similarity metrics are evaluated in three ways:

- Correlation: the scores of a metric are compared with human ratings.
- Contrast set: a metric should score a rewording higher than a text with another meaning.
- Robustness: a summary of code is edited, and scored against the original summary. The score should fall
  little if the edit keeps the meaning, and much if the edit changes the meaning.
"""
