"""The vocabulary, the token shards and the initial token vectors."""
