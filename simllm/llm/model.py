"""A language model at an endpoint: its address, the sampling of its replies, and the limits of its use."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from simllm.errors import InputError, OptionError
from simllm.io.reading import build, read_toml
from simllm.llm.limits import Price

APIS = ("chat", "completions")
ALTERNATIVES = 20  # tokens with their log-probabilities at each place; endpoints allow no more
_MOST_PARALLEL = 1000
_KEY_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY")
_OWN_KEYS = ("model", "messages", "prompt", "n", "stream", "logprobs", "top_logprobs")

Message = dict[str, str]  # role and content


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Sampling parameters of a reply. A request leaves out those that are None: the endpoint's default holds.

    Attributes:
        temperature: 0 for the most probable reply.
        top_p: The share of the probability from which tokens are drawn.
        max_tokens: The largest number of tokens of a reply.
        seed: The seed of the first sample; sample n has the seed `seed + n - 1`, so that samples differ.
        stop: Texts at which a reply ends.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.temperature is not None and not 0 <= self.temperature < math.inf:
            raise OptionError("{temperature} {given}: expected a number from 0", given=self.temperature)
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise OptionError("{top_p} {given}: expected a number above 0, up to 1", given=self.top_p)
        if self.max_tokens is not None and self.max_tokens < 1:
            raise OptionError("{max_tokens} {given}: expected a whole number from 1", given=self.max_tokens)
        for name in ("temperature", "top_p"):  # 1 and 1.0 are the same request
            if isinstance(getattr(self, name), int):
                object.__setattr__(self, name, float(getattr(self, name)))
        stop: Any = self.stop  # from Python or a command line, which have texts and lists
        if isinstance(stop, str | list):
            object.__setattr__(self, "stop", (stop,) if isinstance(stop, str) else tuple(stop))
        if not all(self.stop or ()):
            raise OptionError("{stop}: expected a text, not an empty one")

    def parameters(self, sample: int = 1) -> dict[str, Any]:
        """Return the parameters of a request for a sample, counted from 1; without those that are not set."""
        values = {one.name: getattr(self, one.name) for one in fields(Sampling)}
        if self.seed is not None:
            values["seed"] = self.seed + sample - 1
        values["stop"] = list(self.stop or ()) or None
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Model(Sampling):
    """A language model at an OpenAI-compatible endpoint, with the limits of its use.

    Attributes:
        base_url: The address, such as "http://localhost:8000/v1"; None for the environment variable
            OPENAI_BASE_URL.
        model: The name of the model at the endpoint; None leaves the choice to the server.
        api: "chat" (messages), or "completions" (plain text that the model continues, for base models).
        extra: More parameters of requests, such as {"top_k": 40}.
        key_variable: The environment variable with the API key.
        parallel: The number of requests at the same time.
        retries: The largest number of times that a failed request is repeated.
        rate: The largest number of requests in a minute.
        price: The prices of a million tokens of requests and of replies.
        max_cost: The total cost after which no more requests are sent.
    """

    base_url: str | None = None
    model: str | None = None
    api: str = "chat"
    extra: dict[str, Any] = field(default_factory=dict)
    key_variable: str = "OPENAI_API_KEY"
    parallel: int = 8
    retries: int = 5
    rate: float | None = None
    price: Price | None = None
    max_cost: float | None = None

    def __post_init__(self) -> None:
        """Check all values."""
        super().__post_init__()
        if self.api not in APIS:
            raise OptionError("{api} {given}: expected chat or completions", given=self.api)
        if not 1 <= self.parallel <= _MOST_PARALLEL:
            message = "{parallel} {number}: expected a whole number from 1 to {most:,}"
            raise OptionError(message, number=self.parallel, most=_MOST_PARALLEL)
        if self.retries < 0:
            raise OptionError("{retries} {number}: expected a whole number from 0", number=self.retries)
        if self.max_cost is not None and self.price is None:
            raise OptionError("{max_cost} needs {prices} FILE")
        for name, value in (("max_cost", self.max_cost), ("rate", self.rate)):
            if value is not None and not 0 < value < math.inf:
                raise OptionError(f"{{{name}}} {value}: expected a positive number")
        # A file from somebody else may name the variable: it must not reach other secrets.
        if not _KEY_VARIABLE.fullmatch(self.key_variable):
            raise OptionError(
                "{key_variable} {given}: expected a name such as MY_API_KEY", given=self.key_variable
            )
        own = {*_OWN_KEYS, *(one.name for one in fields(Sampling))}
        if taken := own & self.extra.keys():
            raise OptionError("{extra} {name}: has a place of its own, or is not for users", name=min(taken))
        try:
            json.dumps(self.extra, allow_nan=False)
        except (TypeError, ValueError):  # TOML has dates, and numbers that are none
            raise OptionError("{extra}: expected values that JSON can hold") from None

    def request(
        self, prompt: str | Sequence[Message], sample: int = 1, logprobs: bool = False
    ) -> dict[str, Any]:
        """Build the JSON object of a request; a text is the one message of a user, or what is continued."""
        content: dict[str, Any]
        if self.api == "completions":
            if not isinstance(prompt, str):
                raise OptionError("{api} completions: takes a text, not a conversation")
            content = {"prompt": prompt}
        else:
            content = {
                "messages": [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
            }
        if self.model is not None:
            content = {"model": self.model, **content}
        wanted: dict[str, Any] = {}
        if logprobs:
            of_chat = {"logprobs": True, "top_logprobs": ALTERNATIVES}
            wanted = of_chat if self.api == "chat" else {"logprobs": ALTERNATIVES}
        return {**content, **self.parameters(sample), **self.extra, **wanted}


AnyModel = TypeVar("AnyModel", bound=Model)


def read_model(file: Path, cls: type[AnyModel] = Model) -> AnyModel:  # type: ignore[assignment]
    """Read a model from a TOML file with the fields of `Model`, or of a subclass, as keys.

    Raises:
        InputError: The file is no TOML, or has unknown keys or wrong values; the message lists all problems.
    """
    values = read_toml(file)
    if "max_cost" in values and "price" not in values:  # options have another name for prices
        raise InputError(f"{file}: max_cost needs price")
    return build(cls, values, str(file))


def content_hash(content: object) -> str:
    """Return the SHA-256 of a JSON value, with sorted keys and no white space."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def without_text(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request with the hash of its messages, or of its prompt, in their place: for records."""
    name = "messages" if "messages" in request else "prompt"
    return {**request, name: content_hash(request[name])}
