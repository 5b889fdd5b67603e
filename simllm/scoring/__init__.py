"""Scoring of text pairs, in batches and in streams."""
