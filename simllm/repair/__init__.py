"""Repair: a model mends a program or a summary, is told what is wrong, and tries again."""
