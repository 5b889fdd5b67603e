"""Fetching of public data sets: their catalog, and their download, conversion and verification."""
