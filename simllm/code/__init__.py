"""Analysis of source code: documented functions, syntax trees, git histories and code in model replies.

The *normal form* of code has a uniform layout, and no comments, docstrings and imports. Texts that differ
only in these have equal normal forms.
"""
