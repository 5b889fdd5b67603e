"""Statistics: correlations, significance tests, agreement of raters."""
