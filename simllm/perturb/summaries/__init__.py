"""Rule-based edits of code summaries; some keep the meaning, and others change it.

Training uses edits that keep the meaning as positives, and changes of meaning as hard negatives. The
robustness evaluation measures how edits change a metric's scores. All functions expect cleaned texts.
"""
