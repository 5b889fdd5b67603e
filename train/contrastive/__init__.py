"""The contrastive stage: embeddings of texts with the same meaning move together."""
