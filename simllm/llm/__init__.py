"""Questions to language models: templates, requests, limits of rate and cost, labels, and records on disk.

An endpoint is the address at which a server offers a model. A reply is lost if it did not arrive, or cannot
be read: a later run may ask for it again. A request fails for good if no repetition can help; its failure is
recorded like a reply. A record keeps replies by request and slot (item, sample, round). A session asks
questions: what the record has is not asked again. A replay reads a record alone, without an endpoint.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simllm.llm.endpoint import LostReplyError
    from simllm.llm.generation import generate
    from simllm.llm.model import Model, Sampling, read_model

__all__ = ["LostReplyError", "Model", "Sampling", "generate", "read_model"]
_PLACES = {
    "LostReplyError": "endpoint", "Model": "model", "Sampling": "model", "generate": "generation",
    "read_model": "model",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    # Late, so that a command that needs only the records does not import the whole engine.
    if name in _PLACES:
        from importlib import import_module

        return getattr(import_module(f"simllm.llm.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
