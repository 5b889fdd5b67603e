"""Rule-based edits of code, of code summaries, and of prompts and inputs.

Edits of code (package `code`) keep its behaviour. Some edits of summaries (package `summaries`) keep the
meaning, and others change it. Attacks (module `text`) should not change the answer of a classifier.
"""
