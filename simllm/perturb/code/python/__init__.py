"""Safe rewrites of Python code."""
