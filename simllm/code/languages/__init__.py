"""Programming languages: file suffixes, parsers, and rules that find documented functions in source code.

Each language has its rules in `rules.py`. A rule `function` takes the path of syntax nodes from
the root to a token, such as the first word of a function. It returns the path from the root to the function,
or None if no function begins with the token. Places in a file are byte offsets from 0.
"""
