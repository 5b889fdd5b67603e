"""Answers of a model to many independent questions: asked in parallel, and read for a label such as "yes"."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any

from simllm.llm.endpoint import ChatClient, LostReplyError, RawReply, RefusedRequestError, parse_reply

_MOST_LOST = 10  # answers in a row; then the endpoint counts as lost
_THINKING = re.compile(
    r"<(think|thinking|thought|reasoning|reflection|scratchpad)>.*?(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL
)
# Some servers cut the opening mark off, so that only the end of the thoughts can be seen.
_END_OF_THINKING = re.compile(
    r"\A.*</(?:think|thinking|thought|reasoning)>|\A.*<\|channel\|>final<\|message\|>",
    re.IGNORECASE | re.DOTALL,
)
_SENTENCE_END = re.compile(r"[.!?:;]\s")
_MARKER = re.compile(r"\b(?:answer|verdict|conclusion|label)\b[\s\"'*_]*(?::|=|\bis\b)", re.IGNORECASE)


def ask_all(
    client: ChatClient, requests: Iterable[tuple[str, dict[str, Any]]], parallel: int
) -> Generator[tuple[str, RawReply | LostReplyError]]:
    """Send independent requests, `parallel` at a time; yield each key with its reply or error as they arrive.

    The next requests are sent while the caller uses an answer. If the generator is closed, requests under way
    are ended. The client is closed at the end. Ten lost replies in a row raise `LostReplyError`.
    """
    waiting, lost = iter(requests), 0
    with ThreadPoolExecutor(parallel) as pool:
        keys: dict[Future[RawReply | LostReplyError], str] = {}
        try:
            while True:
                # Never more than `parallel` under way: a stopped run loses no more answers than these.
                for key, request in islice(waiting, parallel - len(keys)):
                    keys[pool.submit(_ask, client, request)] = key
                if not keys:
                    return
                for future in wait(keys, return_when=FIRST_COMPLETED).done:
                    reply = future.result()
                    is_lost = isinstance(reply, LostReplyError) and not isinstance(reply, RefusedRequestError)
                    # A refused request is no sign of a lost endpoint.
                    lost = lost + 1 if is_lost else 0
                    yield keys.pop(future), reply
                    if lost >= _MOST_LOST:
                        raise LostReplyError(str(reply))
        finally:
            client.close()


def _ask(client: ChatClient, request: dict[str, Any]) -> RawReply | LostReplyError:
    try:
        raw = client.ask(request)
        parse_reply(raw)
    except LostReplyError as error:
        return error
    return raw


def without_thinking(text: str) -> str:
    """Remove what a model wrote while it thought, such as "<think>…</think>", also if an end is missing."""
    return _END_OF_THINKING.sub("", _THINKING.sub("", text))


def read_label(answer: str, labels: Sequence[str]) -> str | None:
    """Find the label that a model's answer names, such as "yes"; None if it names none.

    What follows the last "Answer:" counts, if there is one, and thinking does not. A label that stands alone
    at the beginning of a line or sentence ("Yes, because …") counts before labels inside of a sentence; among
    equals, the last one counts. Labels are whole words, in lower or upper case.
    """
    text = without_thinking(answer)
    # The longest label first, because "no" would match the beginning of "no change".
    one = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    word = rf"(?<![^\W_])(?P<label>{one})(?![^\W_])"
    if markers := list(_MARKER.finditer(text)):
        # Models repeat the question, or correct themselves: the last "Answer:" counts.
        text = text[markers[-1].end() :]
        if found := re.match(rf"[\W_]*{word}", text, re.IGNORECASE):
            return _spelled(found["label"], labels)
    # A match takes all signs before a word with it, so that no sign is looked at twice: a reply may be long.
    ends = r"[*_`\"')\]]*(?:[,.!:;?\u2014-]|\s*$|\s+[\u2013\u2014-]|\s*\()"
    steps = re.finditer(
        rf"(?P<signs>[^\w\n]*+)(?:_*+{word}(?={ends})|\w++|\n|\Z)", text, re.IGNORECASE | re.MULTILINE
    )
    alone = [step for step in steps if step["label"] and _begins_sentence(text, step.start(), step["signs"])]
    every = alone or list(re.finditer(word, text, re.IGNORECASE))
    return _spelled(every[-1]["label"], labels) if every else None


def _begins_sentence(text: str, start: int, signs: str) -> bool:
    """Return whether a word begins a line or sentence; it follows the signs that begin at `start`."""
    return start == 0 or text[start - 1] == "\n" or bool(_SENTENCE_END.search(signs))


def _spelled(found: str, labels: Sequence[str]) -> str:
    return next(label for label in labels if label.lower() == found.lower())
