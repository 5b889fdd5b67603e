"""Perturbations of summaries: rewordings, and changes of meaning."""
