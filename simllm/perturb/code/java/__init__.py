"""Rewrites of Java code that keep its behaviour."""
