"""Uses of the metric: comparison of systems, explanation of scores, golden scores, rewards for training."""
