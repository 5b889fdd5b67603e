"""Questions to language models: the endpoint, limits of rate and cost, answers, and records on disk.

An endpoint is the address at which a server offers a model. A reply is lost if it did not arrive, or cannot
be read; a request is refused if no repetition can help.
"""
