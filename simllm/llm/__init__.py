"""Questions to language models: the endpoint, limits of rate and cost, and records on disk."""
