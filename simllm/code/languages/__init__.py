"""Programming languages: file suffixes, parsers, and rules that find documented functions in source code."""
