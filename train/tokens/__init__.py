"""Vocabulary, token shards and initial token vectors."""
