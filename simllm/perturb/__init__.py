"""Rule-based edits of code and of code summaries.

Edits of code keep its behaviour. Some edits of summaries keep the meaning, and others change it.
"""
