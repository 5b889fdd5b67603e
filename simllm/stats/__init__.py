"""Statistics: correlations, significance tests, rater agreement."""
