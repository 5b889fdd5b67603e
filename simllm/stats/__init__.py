"""Statistics: correlation, significance tests, agreement between raters, calibration of probabilities.

All p-values are two-sided and all intervals are 95% intervals. NaN stands for an undefined value, and
also for the ends of an interval that would look too certain. Random generators have fixed seeds.

- Confusion matrices: `counts` has the shape (..., k, k + 1), one matrix for k classes or an array of
  matrices. A row is a true class, a column a predicted class. The last column counts unparsed outputs:
  outputs of a classifier from which no class could be read. Of two classes, the first is the positive one.
- A discordant item is one that exactly one of two classifiers gets right.
- A run of a classifier gives one prediction for each item; a fold is a part of cross-validation.
- A system, such as a classifier or a metric, has one value for each item.
"""
