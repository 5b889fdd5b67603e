"""Perturbations: rewordings of summaries, and changes of their meaning."""
