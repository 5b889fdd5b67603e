"""Rewrites of Python code that keep its behaviour."""
