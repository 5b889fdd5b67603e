"""The contrastive stage: texts of equal meaning are drawn together."""
