"""Edits of summaries by rule, which keep or change the meaning.

Training uses them as positives and hard negatives. The robustness evaluation measures how much they
change the scores of a metric. All functions take and return cleaned texts.
"""
