"""Rule-based edits of code summaries; some keep the meaning, and others change it.

Training uses a summary with an edit that keeps the meaning as a positive, and one with a changed meaning as a
hard negative. The robustness evaluation measures how edits change a metric's scores. All functions expect
texts that `simllm.text_cleaning.clean` has cleaned.
"""
