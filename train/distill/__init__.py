"""Distillation: a student learns the embeddings of larger sentence encoders."""
