"""The training loop, and everything else that all stages of training share."""
