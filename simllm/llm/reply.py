"""A reply of a model, read from the answer of an endpoint: text, tokens, log-probabilities, or failure."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simllm.llm.endpoint import NO_ANSWER, LostReplyError, RawReply, error_message, redact_message

MOST_TOKENS = 1 << 40  # of a request or reply; a server may report any number
OVERFLOW = "beyond the context"  # the beginning of a failure


@dataclass(frozen=True)
class Place:
    """A place in a reply: the token there, and the log-probabilities of the best tokens at this place."""

    token: str
    alternatives: Mapping[str, float]


@dataclass(frozen=True)
class Reply:
    """A model's reply.

    Attributes:
        text: None if the request failed for good.
        prompt_tokens: The number of tokens of the request; None if the server does not report it.
        completion_tokens: The number of tokens of the reply; None if the server does not report it.
        finish_reason: Why the reply ends, such as "stop", or "length" if it is cut off.
        failure: Why there is no usable reply, however often the request is repeated; None if there is one.
        places: The places of the reply with log-probabilities; of a recorded reply, those of its label.
        seconds: The time from the request to the reply.
    """

    text: str | None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    finish_reason: str | None = None
    failure: str | None = None
    places: tuple[Place, ...] | None = None
    seconds: float | None = None

    @property
    def is_overflow(self) -> bool:
        """Whether the request is longer than the model's context."""
        return self.failure is not None and self.failure.startswith(OVERFLOW)


def parse_reply(raw: RawReply) -> Reply:
    """Read a reply of `/chat/completions` or `/completions`.

    Raises:
        LostReplyError: The server does not answer as it should; another time, it may.
    """
    if raw.status != 200:
        # Only a request that is too long for the model has another status here.
        reason = redact_message(error_message(raw.body), "")
        return Reply(None, failure=f"{OVERFLOW} (HTTP status {raw.status}: {reason})")
    try:
        body = json.loads(raw.body)
        choice = body["choices"][0]
        content = choice["message"] if "message" in choice else {"content": choice["text"]}
        text, refusal = content.get("content"), content.get("refusal")
        if isinstance(text, list):  # of parts; some of them may be thoughts
            text = "".join(part["text"] for part in text if part.get("type") == "text")
        usage = body.get("usage") or {}
        counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
        reason = choice.get("finish_reason")
        places = _places(choice.get("logprobs"))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise LostReplyError(NO_ANSWER) from None
    if not isinstance(text, str | None):
        raise LostReplyError("the endpoint does not answer with a text")
    tokens = [count if type(count) is int and 0 <= count <= MOST_TOKENS else None for count in counts]
    finish = reason[:40] if isinstance(reason, str) else None
    failure = None
    if finish == "content_filter":
        failure = "content filter"
    elif isinstance(refusal, str) and refusal and not text:
        failure = f"refusal: {redact_message(refusal, '')}"
    whole = None if failure else _encodable(text or "")
    return Reply(whole, tokens[0], tokens[1], finish, failure, None if failure else places)


def _places(found: Any) -> tuple[Place, ...] | None:
    """Read log-probabilities: those of chat completions, or of the older completions; None without any."""
    if not found:
        return None
    if found.get("content") is not None:
        # A character may have several tokens; its text is then that of the last one.
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        return tuple(
            Place(
                decoder.decode(_bytes(one)),
                _summed((_token(other), other["logprob"]) for other in [*one["top_logprobs"], one]),
            )
            for one in found["content"]
        )
    if not found.get("top_logprobs"):
        return None
    rows = zip(found["tokens"], found["token_logprobs"], found["top_logprobs"], strict=True)
    return tuple(
        Place(_encodable(token), _summed([*(best or {}).items(), (token, value)]))
        for token, value, best in rows
    )


def _bytes(one: Mapping[str, Any]) -> bytes:
    return bytes(one["bytes"]) if one.get("bytes") else one["token"].encode(errors="replace")


def _token(one: Mapping[str, Any]) -> str:
    """Return the text of a token; a part of a character is U+FFFD."""
    return _bytes(one).decode(errors="replace")


def _summed(pairs: Any) -> dict[str, float]:
    """Return log-probabilities by text. The token of the reply is the last pair, and also among the best."""
    found: dict[str, float] = {}
    *best, (own, value) = pairs
    for token, logprob in best:
        if isinstance(logprob, int | float) and not math.isnan(logprob):
            found[token] = _log_sum(found[token], logprob) if token in found else float(logprob)
    if own not in found and isinstance(value, int | float) and not math.isnan(value):
        found[own] = float(value)
    # Six digits are enough for a probability, and let a record be a fifth shorter.
    return {token: round(min(logprob, 0.0), 6) for token, logprob in found.items() if logprob > -math.inf}


def _log_sum(a: float, b: float) -> float:
    return max(a, b) + math.log1p(math.exp(-abs(a - b))) if max(a, b) > -math.inf else a


def _encodable(text: str) -> str:
    """Replace half surrogate pairs, which JSON can hold, and no file can."""
    return text.encode(errors="replace").decode()


def to_row(reply: Reply) -> dict[str, Any]:
    """Return a reply as a JSON object, without what is None."""
    row = {
        "reply": reply.text,
        "finish_reason": reply.finish_reason,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "seconds": reply.seconds,
        "failure": reply.failure,
        "logprobs": None
        if reply.places is None
        else [{"token": one.token, "best": dict(one.alternatives)} for one in reply.places],
    }
    return {name: value for name, value in row.items() if value is not None}


def from_row(row: Mapping[str, Any]) -> Reply:
    """Read a reply from the JSON object that `to_row` made; a wrong value raises `ValueError`."""
    kinds: Sequence[tuple[str, type | tuple[type, ...]]] = (
        ("reply", str), ("finish_reason", str), ("prompt_tokens", int), ("completion_tokens", int),
        ("seconds", (int, float)), ("failure", str), ("logprobs", list),
    )  # fmt: skip
    for name, kind in kinds:
        value = row.get(name)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise ValueError(f"an unexpected value under {name}")
    if (row.get("reply") is None) == (row.get("failure") is None):
        raise ValueError("expected a text under reply, or else under failure")
    places = None
    if (found := row.get("logprobs")) is not None:
        try:
            places = tuple(
                Place(str(one["token"]), {str(key): float(value) for key, value in one["best"].items()})
                for one in found
            )
        except (LookupError, TypeError, AttributeError):
            raise ValueError("an unexpected value under logprobs") from None
    return Reply(
        row.get("reply"), row.get("prompt_tokens"), row.get("completion_tokens"), row.get("finish_reason"),
        row.get("failure"), places, row.get("seconds"),
    )  # fmt: skip
