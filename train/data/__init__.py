"""Fetching of public data sets: their catalog, and their download, conversion and verification.

Terms of this package:

- row: a JSON object, one line of a converted file.
- reader: a function that converts fetched files into rows.
- repository: a git repository, named "owner/name"; its files are read at a fixed commit.
- host: the part of the URL before "/owner/name", or a local folder of repositories.
- key of a text: its words in lower case, without punctuation.
"""
