"""Training of the models; it runs from a checkout and is not installed."""
