"""Pretraining: permuted language modelling, from a corpus to a model folder."""
