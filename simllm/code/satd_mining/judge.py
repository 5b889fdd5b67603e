"""The judge: a language model that is asked whether a repayment is real, and its answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from simllm.code.satd_mining.repayments import Repayment
from simllm.errors import InputError
from simllm.io import reading
from simllm.llm.answers import ask_all, read_label
from simllm.llm.endpoint import (
    ChatClient,
    LostReplyError,
    RawReply,
    RefusedRequestError,
    error_message,
    make_request,
    parse_reply,
    redact_message,
)

VERDICTS = ("yes", "no", "unclear", "failed")
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
class Judge:
    """A language model at an endpoint.

    Attributes:
        url: The address, such as "http://localhost:8000". It may end in `/v1` or `/v1/chat/completions`.
        model: None leaves the choice to the server.
        parallel: The number of questions at the same time.
        retries: The largest number of times that a failed request is repeated.
    """

    url: str
    model: str | None = None
    parallel: int = 8
    retries: int = 5

    def client(self) -> ChatClient:
        """Make the client of the endpoint."""
        if self.parallel < 1:
            raise InputError(f"--parallel {self.parallel}: expected a whole number from 1")
        address = self.url.rstrip("/").removesuffix("/chat/completions")
        is_whole = address.endswith("/v1") or "://" not in address  # the client refuses the latter
        return ChatClient(address if is_whole else f"{address}/v1", self.retries)


@dataclass(frozen=True)
class Answer:
    """A judge's answer about a repayment.

    Attributes:
        question: The hash of the question.
        text: What the model wrote; "" if it failed.
        failure: Why there is no usable answer, such as a conversation that is too long; "" if there is one.
    """

    question: str
    text: str = ""
    failure: str = ""

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`: the last label that the model named, or "unclear", or "failed"."""
        return "failed" if self.failure else read_label(self.text, ("yes", "no")) or "unclear"


@dataclass(frozen=True)
class Lost:
    """A question whose answer was lost even after retries, and the reason. A later run may ask it again."""

    question: str
    reason: str


def question_hash(judge: Judge, repayment: Repayment) -> str:
    """Return a hash of a question to a model, which depends on the address, the model and the text."""
    content = [judge.url, judge.model, _question(repayment)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def ask(judge: Judge, client: ChatClient, repayments: Mapping[str, Repayment]) -> Generator[Answer | Lost]:
    """Ask about repayments, given by the hashes of their questions; yield each answer as it arrives."""
    requests = (
        # Temperature 0, so that answers differ as little as possible between runs.
        (key, make_request(judge.model, [{"role": "user", "content": _question(repayment)}], 0))
        for key, repayment in repayments.items()
    )
    with closing(ask_all(client, requests, judge.parallel)) as replies:
        for key, reply in replies:
            if isinstance(reply, RefusedRequestError):
                yield Answer(key, failure=str(reply))
            elif isinstance(reply, LostReplyError):
                yield Lost(key, str(reply))
            else:
                yield _answer(key, reply)


def _answer(key: str, reply: RawReply) -> Answer:
    text = parse_reply(reply).text
    if text is None:
        # The client has replaced the key already; other secrets may be left in the message.
        message = redact_message(error_message(reply.body), "")
        return Answer(key, failure=f"too long for the model (HTTP status {reply.status}: {message})")
    return Answer(key, text)


def read_answers(file: Path) -> list[Answer]:
    """Read the answers that an earlier run paid for; an empty list if there is no such file."""
    if not file.exists():
        return []
    answers = []
    for where, row in reading.objects(file):
        try:
            texts = [reading.text_under(row, name, where) for name in ("question", "answer", "failure")]
        except InputError as error:
            raise InputError(f"{error}; the answers of the judge go to this file: move it") from None
        answers.append(Answer(*texts))
    return answers


def answer_lines(answers: Sequence[Answer], items: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield a line of JSON for each answer, with the item to which it belongs, if it is known."""
    for answer in answers:
        item = items.get(answer.question, {})
        about = {key: item[key] for key in ("id", "repository", "commit", "path", "function") if key in item}
        row = {"question": answer.question, "verdict": answer.verdict, "answer": answer.text}
        yield json.dumps({**about, **row, "failure": answer.failure}) + "\n"


def _question(repayment: Repayment) -> str:
    return _PROMPT.format(
        language=repayment.language,
        comment=repayment.comment,
        source=repayment.source,
        reference=repayment.reference,
    )
