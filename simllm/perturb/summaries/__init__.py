"""Edits of summaries by rule: some keep the meaning, some change it.

Training uses them to make positives and hard negatives. The evaluation of robustness measures how
far each of them moves a metric. All of them take and return cleaned texts.
"""
