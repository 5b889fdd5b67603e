"""Rule-based edits of code and of code summaries.

Edits of code (package `code`) keep its behaviour. Some edits of summaries (package `summaries`) keep the
meaning, and others change it.
"""
