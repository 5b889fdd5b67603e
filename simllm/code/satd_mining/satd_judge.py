"""Questions to a language model: does a change of code repay a technical debt?

The change is part of a commit, and deletes a comment such as "TODO: handle errors". In this comment, the
developers of the code admitted a shortcoming, which is called self-admitted technical debt (SATD). The model
is on a server with the OpenAI-compatible chat interface.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib import request
from urllib.error import HTTPError

from simllm.code.satd_mining.debt_repayments import Repayment
from simllm.errors import InputError

_TIMEOUT = 600  # seconds without a byte of the answer
_LARGEST_ANSWER = 1 << 24  # bytes
_SHOWN = 200  # characters of the server's message in an error
_PROMPT = """\
A commit deletes a comment in which developers admit a shortcoming of their {language} code.
Does the commit also change the code so that the shortcoming is gone, as the comment asks?
Begin your answer with "yes" or "no".

The comment:
{comment}

The function before the commit:
{source}

The function after the commit:
{reference}
"""


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


def question_hash(endpoint: ChatEndpoint, repayment: Repayment) -> str:
    """Return a hash that identifies a question to a model, so that the answer can be stored under this hash.

    The question is whether a change of code repays a technical debt. The hash depends on the server's
    address, the name of the model, and the text of the question.

    Args:
        endpoint: The server with the model.
        repayment: The comment that admits the debt, and the function to which the comment belongs, before and
            after the change.
    """
    content = [endpoint.url, endpoint.model, _question(repayment)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def ask(endpoint: ChatEndpoint, repayment: Repayment) -> str:
    """Ask a language model whether a change of code repays the technical debt that a deleted comment admits.

    Args:
        endpoint: The server with the model.
        repayment: The deleted comment, and the function to which the comment belongs, before and after the
            change.

    Returns:
        The model's answer.

    Raises:
        InputError: The server gives no answer.
    """
    return endpoint.ask(_question(repayment))


def is_yes(answer: str) -> bool:
    """Return whether an answer begins with the word "yes", in upper or lower case.

    Marks before the word, such as `**`, are ignored.
    """
    return re.match(r"\W*yes\b", answer, re.IGNORECASE) is not None


def _question(repayment: Repayment) -> str:
    return _PROMPT.format(
        language=repayment.language,
        comment=repayment.comment,
        source=repayment.source,
        reference=repayment.reference,
    )
