"""Tools built on the metric, such as comparison of summarizers, explanation of scores, and reports."""
