"""Edits of summaries by rule: some keep the meaning, some change it.

Training makes positives and hard negatives with them; the evaluation of robustness asks how
far a metric moves under each. All of them take and return cleaned texts.
"""
