"""Scoring of text pairs by similarity and by probability of the same meaning."""
