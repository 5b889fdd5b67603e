"""Rewrites of Java and Python code that keep its behaviour."""
