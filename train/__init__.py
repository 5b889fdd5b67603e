"""Training of the models; it runs from a checkout of the repository and is not installed with simllm."""
