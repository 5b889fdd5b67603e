"""Evaluation of metrics: rated data, baselines, correlation with people, studies, contrast, robustness."""
