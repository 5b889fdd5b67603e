"""The vocabulary, the token shards (token ids of a corpus on disk) and the initial token embeddings."""
