"""Parsing of a chat server's replies: the text of a reply, and its number of tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass


class LostReplyError(Exception):
    """Error for a chat model's reply that did not arrive or cannot be read. A later request may succeed."""


@dataclass(frozen=True)
class RawReply:
    """A server's reply to a request to a chat model, before it is parsed.

    Attributes:
        status: The HTTP status: 200; or 400 or 413 if the conversation is too long for the model.
        body: The HTTP body, a text.
    """

    status: int
    body: str


@dataclass(frozen=True)
class ChatReply:
    """A chat model's reply, parsed from the server's HTTP reply.

    Attributes:
        text: The text that the model wrote; None if the conversation is too long for the model.
        prompt_tokens: The number of tokens of the request; None if the server does not report it.
        completion_tokens: The number of tokens of the reply; None if the server does not report it.
    """

    text: str | None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


def parse_reply(raw: RawReply) -> ChatReply:
    """Read the model's text and the numbers of tokens from the body of a server's reply.

    Returns:
        The reply. Its text is None if the server says that the conversation is too long for the model.

    Raises:
        LostReplyError: The body is not in the format of OpenAI's chat completions.
    """
    if raw.status != 200:
        return ChatReply(None)
    try:
        body = json.loads(raw.body)
        text = body["choices"][0]["message"].get("content")
        usage = body.get("usage") or {}
        counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise LostReplyError("the endpoint does not answer as /chat/completions should") from None
    if not isinstance(text, str | None):
        raise LostReplyError("the endpoint does not answer with a text")
    tokens = [count if type(count) is int and count >= 0 else None for count in counts]
    return ChatReply((text or "").encode(errors="replace").decode(), *tokens)
