"""Rule-based edits of code summaries; some keep the meaning, and others change it.

In training, a reworded summary with the same meaning is a positive example, and a summary with a changed
meaning is a hard negative. The robustness evaluation measures how edits change a metric's scores. All
functions expect texts that `simllm.text_cleaning.clean` has cleaned.
"""
