"""Contrastive training: the model learns similar embeddings for texts with the same meaning."""
