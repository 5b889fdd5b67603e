"""The vocabulary, the token shards (token ids of a corpus on disk) and the initial token embeddings.

A part of the shards is about 8 MiB of text, with one file of token ids and one of lengths.
"""
