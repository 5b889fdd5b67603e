"""Questions to language models: the endpoint, limits of rate and cost, answers, and records on disk."""
