"""Statistics: correlation, significance tests, agreement between raters, calibration of probabilities."""
