"""The server of `simllm serve`: scores and rewards as JSON over HTTP.

Requests wait in a queue. A *batch* is the waiting requests that are scored together. So a busy server has
large batches, an idle one answers at once, and nobody waits for a batch to fill. Each request keeps its own
counts and warnings.
"""
