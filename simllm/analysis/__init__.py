"""Uses of the metric: comparing systems, explaining a score, golden scores, rewards."""
