"""Distillation: a small model, the student, learns the embeddings of larger sentence encoders."""
