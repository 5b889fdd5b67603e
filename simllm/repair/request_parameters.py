"""The parameters of a request to a chat model, such as its temperature, and a key for each request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from simllm.repair.round_messages import Message


def make_request(model: str, messages: Sequence[Message]) -> dict[str, Any]:
    """Build the JSON object of a request: messages to a chat model, with temperature 1 and top_p 1."""
    return {"model": model, "messages": list(messages), "temperature": 1, "top_p": 1}


def request_key(request: dict[str, Any]) -> str:
    """Return a key that identifies a request: the SHA-256 of its JSON with sorted keys and no white space."""
    text = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
