"""A client for language models on servers with the OpenAI-compatible chat interface."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib import request
from urllib.error import HTTPError

from simllm.errors import InputError

_TIMEOUT = 600  # seconds without a byte of the answer
_LARGEST_ANSWER = 1 << 24  # bytes
_SHOWN = 200  # characters of the server's message in an error


@dataclass(frozen=True)
class ChatEndpoint:
    """A language model on a server with the OpenAI-compatible interface `/v1/chat/completions`.

    Attributes:
        url: The address, such as "http://localhost:8000". It may end in `/v1` or `/v1/chat/completions`.
        model: The name of the model; None leaves the choice to the server.
        key: The API key; empty for servers without keys.
    """

    url: str
    model: str | None = None
    key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Check that `url` is a web address.

        Raises:
            InputError: The address does not begin with http:// or https://.
        """
        if not self.url.startswith(("http://", "https://")):
            raise InputError(f"{self.url}: expected an address such as http://localhost:8000")

    def ask(self, prompt: str) -> str:
        """Send one message to the model at temperature 0, and return the text of its answer.

        Raises:
            InputError: The server cannot be reached, reports an error, or answers in another format.
        """
        body: dict[str, Any] = {"messages": [{"role": "user", "content": prompt}], "temperature": 0}
        if self.model:
            body["model"] = self.model
        address = self.url.rstrip("/").removesuffix("/chat/completions").removesuffix("/v1")
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        asked = request.Request(
            f"{address}/v1/chat/completions", json.dumps(body).encode(), headers, method="POST"
        )
        try:
            with request.build_opener(_NoRedirect).open(asked, timeout=_TIMEOUT) as answer:
                data = answer.read(_LARGEST_ANSWER)
        except HTTPError as error:
            message = error.read(_LARGEST_ANSWER).decode("utf-8", "replace")[:_SHOWN]
            raise InputError(f"{self.url}: {error.code} {error.reason} {message}".rstrip()) from None
        except (OSError, HTTPException, ValueError) as error:
            raise InputError(f"{self.url}: gives no answer ({getattr(error, 'reason', error)})") from None
        try:
            content = json.loads(data)["choices"][0]["message"]["content"]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise InputError(f"{self.url}: does not answer as /v1/chat/completions should") from None
        if not isinstance(content, str):
            raise InputError(f"{self.url}: does not answer with a text")
        return content


class _NoRedirect(request.HTTPRedirectHandler):
    """Handler that refuses redirections, because they would pass the API key to another server."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse every redirection: return None, so that `urllib` reports an HTTP error."""
