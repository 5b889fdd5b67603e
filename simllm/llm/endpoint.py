"""A client of OpenAI-compatible endpoints: requests, retries, and the parsing of replies.

An endpoint is the address at which a server offers a model.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from simllm.errors import InputError
from simllm.optional_packages import missing_package

Message = dict[str, str]  # role and content
_KEY = "OPENAI_API_KEY"
_URL = "OPENAI_BASE_URL"
_LEAST_KEY = 8  # characters; a shorter key is no secret, and could be part of any text
_TIMEOUT = 600.0  # seconds without a byte
_FIRST_CONNECTION = 10.0  # seconds
_LONGEST = 3600.0  # seconds for a reply with all its retries
_SHOWN = 200  # characters of the server's message in an error
# Words in which servers say that a conversation is longer than the model's context.
_OVERFLOW = re.compile(
    r"context[\s_-]*(length|size|window)|maximum context|exceed_context|(prompt|input) (is )?too long",
    re.IGNORECASE,
)


def make_request(model: str, messages: Sequence[Message]) -> dict[str, Any]:
    """Build the JSON object of a request: messages to a chat model, with temperature 1 and top_p 1."""
    return {"model": model, "messages": list(messages), "temperature": 1, "top_p": 1}


def request_key(request: dict[str, Any]) -> str:
    """Return a key that identifies a request: the SHA-256 of its JSON with sorted keys and no white space."""
    text = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


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


class ChatClient:
    """Client of an OpenAI-compatible endpoint. Several threads may use it at the same time.

    The API key comes from the environment variable OPENAI_API_KEY. In replies and error messages, "[API key]"
    replaces the key.

    Args:
        base_url: The address of the endpoint, such as "http://localhost:8000/v1"; None means the value of the
            environment variable OPENAI_BASE_URL.
        retries: The largest number of times that a failed request is repeated.

    Raises:
        InputError: There is no address, or it contains a password; the API key has forbidden characters; or
            the library `openai` is missing.
    """

    def __init__(self, base_url: str | None, retries: int = 5) -> None:
        url = base_url or os.environ.get(_URL, "")
        if not url:
            raise InputError(f"expected --base-url URL, or {_URL}: where should the requests go?")
        self._key = os.environ.get(_KEY, "").strip()
        self._url = self._hidden(url)
        try:
            parts = urlsplit(url)
            is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if any(sign in url for sign in "@?#"):  # a user, a query or a fragment
            raise InputError(f"the address of the endpoint has a secret in it; the key goes into {_KEY}")
        if not is_address:
            raise InputError(f"{self._url}: expected an address such as http://localhost:8000/v1")
        if retries < 0:
            raise InputError(f"--retries {retries}: expected a whole number from 0")
        if not re.fullmatch("[!-~]*", self._key):
            raise InputError(f"{_KEY}: expected a key of ASCII letters, digits and signs, without blanks")
        try:
            import openai
        except ModuleNotFoundError:
            raise InputError(missing_package("openai", "repair")) from None
        self._errors = openai
        self._is_reached = False
        try:
            self._client = openai.AsyncOpenAI(
                base_url=url, api_key=self._key or "none", max_retries=retries, timeout=_TIMEOUT
            )
        except Exception as error:
            raise InputError(f"{self._url}: {self._hidden(str(error))}") from None
        # Requests run in a loop of their own: unlike a thread that waits, they can be ended at any time.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._closing, self._closed = threading.Lock(), False

    def ask(self, request: dict[str, Any]) -> RawReply:
        """Send a request in the format of OpenAI's chat completions, and return the server's reply.

        Raises:
            InputError: The endpoint refuses all requests (HTTP status 401, 403 or 404); or this is the first
                request, and no server can be reached.
            LostReplyError: No reply came even after retries, or the client was closed.
        """
        openai = self._errors
        try:
            with self._closing:  # nothing is sent to a loop that ends
                if self._closed:
                    raise CancelledError
                answer = asyncio.run_coroutine_threadsafe(self._send(request), self._loop)
            body = answer.result()
        except InputError:
            raise
        except CancelledError:
            raise LostReplyError("the run has stopped") from None
        except TimeoutError:
            raise LostReplyError(f"no whole reply came in {_LONGEST:,.0f} seconds") from None
        except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
            raise InputError(f"the endpoint refuses: {self._message(error)}") from None
        except openai.APIStatusError as error:
            if error.status_code in (400, 413) and _OVERFLOW.search(error.response.text):
                return RawReply(error.status_code, self._hidden(error.response.text))
            raise LostReplyError(self._message(error)) from None
        except (openai.OpenAIError, OSError, ValueError) as error:
            raise LostReplyError(self._message(error)) from None
        return RawReply(200, self._hidden(body))

    def reach(self) -> None:
        """Check that the server can be reached.

        Raises:
            InputError: No connection can be made.
        """
        asyncio.run_coroutine_threadsafe(self._reach(), self._loop).result()

    def close(self) -> None:
        """Cancel unfinished requests, and close all connections. Closing the client again has no effect."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _send(self, request: dict[str, Any]) -> str:
        if not self._is_reached:
            await self._reach()
        async with asyncio.timeout(_LONGEST):
            reply = await self._client.chat.completions.with_raw_response.create(**request)
        return reply.text

    async def _reach(self) -> None:
        """Ask the server for its list of models, without retries. Any answer is good.

        A wrong address is thus found at once, not after the retries of a request.

        Raises:
            InputError: No connection can be made.
        """
        quick = self._client.with_options(max_retries=0, timeout=_FIRST_CONNECTION)
        try:
            async with asyncio.timeout(2 * _FIRST_CONNECTION):
                await quick.models.with_raw_response.list()
        except self._errors.APIConnectionError as error:
            if type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout"):
                raise InputError(f"{self._url}: no server can be reached: {self._message(error)}") from None
        except (self._errors.OpenAIError, OSError, ValueError):
            pass
        self._is_reached = True

    async def _end(self) -> None:
        requests = asyncio.all_tasks() - {asyncio.current_task()}
        for request in requests:
            request.cancel()
        await asyncio.gather(*requests, return_exceptions=True)
        await self._client.close()

    def _message(self, error: Exception) -> str:
        """Describe an error by its message and its cause, in one line of at most 200 characters.

        The API key is replaced by "[API key]".
        """
        cause = f" ({error.__cause__})" if str(error.__cause__ or "") else ""
        return self._hidden(" ".join(f"{error}{cause}".split()))[:_SHOWN]

    def _hidden(self, text: str) -> str:
        """Replace the API key in a text by "[API key]".

        A key of fewer than eight characters is not replaced: it is no secret, and could be part of any text.
        """
        if len(self._key) < _LEAST_KEY:
            return text
        return text.replace(self._key, "[API key]").replace(json.dumps(self._key)[1:-1], "[API key]")
