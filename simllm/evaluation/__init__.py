"""Evaluation of text similarity metrics, of classifiers, and of tools that edit or read code.

Text similarity metrics are evaluated in three ways:

- Correlation: the scores of a metric are compared with human ratings.
- Contrast set: a metric should score a rewording higher than a text with another meaning.
- Robustness: a summary of code is edited, and scored against the original summary. The score should fall
  little if the edit keeps the meaning, and much if the edit changes the meaning.

The words of this package:

- A *pair* is a candidate, such as a generated summary, and a reference. A *rated pair* also has human
  ratings. A *set* is a file of rated pairs.
- A *system* writes candidates.
- Texts are *cleaned* before a metric for texts scores them: lower-case ASCII without comment marks, with
  spaces around punctuation.
- A *signature* is a text with everything that can change a metric's scores, such as options and versions.
- `missing` is a dict from the name of each unavailable metric to the reason, or to advice on how to make it
  available.
- Where lower scores of a metric are better, its scores are negated, so that a positive correlation always
  means agreement with people.
"""
