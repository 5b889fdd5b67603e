"""Rule-based edits of code and of code summaries. Edits of code do not change what the code does.

Some edits of summaries keep the meaning, and others change it.
"""
