"""From pairs of texts to scores, in batches and in streams."""
