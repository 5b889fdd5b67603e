"""Metrics for generated code and code edits, such as CodeBLEU, LEMOD (F1 of edited lines) and RPS.

Terms, in addition to those of `simllm.metrics`:

- The *normal form* of code has a uniform layout, and no comments, docstrings and imports.
- The *edited lines* of a candidate or a reference are the lines that were deleted from the source or inserted
  into it, in normal form.
- *As published* means computed as by the published code of Sheikhaei et al., with its defects.
- A *corpus value* is one value of a metric for a whole data set: the sum of the numerators of
  the scores over the sum of their denominators.
- A metric for code scores NaN where a syntax tree is larger than it allows.
"""
