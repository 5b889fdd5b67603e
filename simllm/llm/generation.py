"""Generation: a template over items, a question for each item and sample, and a file of replies."""

from __future__ import annotations

import contextlib
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simllm.errors import InputError, OptionError
from simllm.io import output_file, reading
from simllm.io.partial_file import path_of
from simllm.llm.answers import check_labels, label_probabilities, read_label
from simllm.llm.model import Model
from simllm.llm.records import ReplyRecord, Slot
from simllm.llm.reply import Reply, from_row
from simllm.llm.session import Question, Session
from simllm.llm.templates import Templates

# The fields of a result. An item with one of them would lose it.
RESULT = (
    "sample", "request", "reply", "finish_reason", "prompt_tokens", "completion_tokens", "seconds", "failure",
    "logprobs",
)  # fmt: skip
OF_LABELS = ("item", "run", "predicted", "probabilities", "tokens")
_RESERVED = (*RESULT, "round", "lost")
_TEMPLATE = "the template"


@dataclass(frozen=True)
class Progress:
    """State of a generation: replies that are there, all replies, those asked now, and their cost so far.

    Attributes:
        rate: Replies of the endpoint in a second; 0 at the beginning.
        cost: None if it is not known.
    """

    done: int
    total: int
    asked: int
    failed: int
    rate: float
    cost: float | None


def generate(
    items: Path | Iterable[Mapping[str, Any]],
    template: Path | str,
    model: Model | None = None,
    *,
    output: Path | None = None,
    samples: int | None = None,
    labels: Sequence[str] = (),
    logprobs: bool = False,
    replay: Path | None = None,
    retry_failed: bool = False,
    keep: Sequence[str] | None = None,
    overwrite: bool = False,
    progress: Callable[[Progress], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Ask a model a question about each item, and return a row for each reply.

    The API key comes from the environment variable OPENAI_API_KEY. With an `output`, each reply is on the
    disk, in the file `OUTPUT.partial`, before it is used. The same call resumes a stopped one, and asks no
    question twice.

    Args:
        items: Objects with a text or whole number under `id`, or a file with such JSON lines.
        template: A jinja2 template over the fields of an item, or its file (as a `Path`).
        model: The model; not with `replay`.
        output: The file of JSON lines for the rows.
        samples: The number of replies to each item; default: 1, and in a replay as many as were recorded.
        labels: The labels of a classification; each row then has the label that the reply names.
        logprobs: Whether rows have the probabilities of the labels, from the endpoint's log-probabilities at
            the place where the reply names its label.
        replay: The file of an earlier generation, whose replies replace the endpoint.
        retry_failed: Whether items are asked again whose request failed for good in an earlier run.
        keep: The fields of items that the rows keep, besides `id`; default: all.
        overwrite: Whether an `output` with other rows is replaced.
        progress: A function that is called after each reply.

    Returns:
        The rows in the order of the items: the item's fields, `sample`, `reply` (None if the request failed
        for good, with the reason under `failure`), tokens, and with labels `predicted` and `probabilities`.

    Raises:
        InputError: An item, the template or an option is wrong, the endpoint refuses all requests, or a
            replay lacks a reply.
        LostReplyError: Replies are missing. They can be asked for with the same call.
    """
    names = check_labels(labels) if labels else ()
    if logprobs and not names:
        raise OptionError("{logprobs} needs {labels}")
    if samples is not None and samples < 1:
        raise OptionError("{samples} {number}: expected a whole number from 1", number=samples)
    if (model is None) == (replay is None):
        raise OptionError("expected a model, or else {replay} FILE")
    rows = _read_items(items, names, keep)
    prompts = render_prompts(rows, template)
    with contextlib.ExitStack() as held:
        if replay is not None:
            record = ReplyRecord(replay, reads_only=True)
            samples = samples or max((row.get("sample", 1) for row in record.rows()), default=1)
            questions = _questions(rows, prompts, samples)
            session = held.enter_context(Session(Model(api=record.api), record, is_replay=True))
            output_file.check_output(output, overwrite=True)
        else:
            assert model is not None
            questions = _questions(rows, prompts, samples or 1)
            if output is not None:
                output_file.check_output(output, overwrite=True)
                held.enter_context(output_file.locked(output_file.real(output)))
            record = held.enter_context(contextlib.closing(_open_record(output)))
            session = held.enter_context(
                Session(model, record, labels=names, logprobs=logprobs, retries_failed=retry_failed)
            )
            if output is not None:
                if output.exists() and output.stat().st_size and not _finished(output):
                    output_file.check_output(output, overwrite)
                _check_others(output, session, questions, overwrite)
        replies = _ask(session, questions, progress)
        session.check_complete()
        made = [
            _row(row, question, replies[question], session.row_of(question) or {}, names, logprobs, keep)
            for row, question in _with_items(rows, questions)
        ]
        if output is not None:
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in made)
            # A finished file stays as it is, so that the same command changes nothing.
            if not (output.is_file() and output.read_bytes() == text.encode()):
                # The replies of another generation may have cost money.
                output_file.check_output(output, overwrite or replay is None)
                output_file.write(output, text)
            if replay is None:
                path_of(output).unlink(missing_ok=True)
    for message in describe(made, names, logprobs):
        warnings.warn(message, stacklevel=2)
    return made


def _read_items(
    items: Path | Iterable[Mapping[str, Any]], labels: Sequence[str], keep: Sequence[str] | None
) -> list[tuple[str, dict[str, Any]]]:
    """Return the place and the fields of each item, with checks of the ids and of the names of fields."""
    numbered = (
        reading.objects(items)
        if isinstance(items, Path)
        else ((f"item {number}", dict(item)) for number, item in enumerate(items, 1))
    )
    taken = (*_RESERVED, *(OF_LABELS if labels else ()))
    rows, places = list[tuple[str, dict[str, Any]]](), dict[str, str]()
    for where, item in numbered:
        id_ = reading.value_under(item, "id", where, "the id of the item")
        if not isinstance(id_, str | int) or isinstance(id_, bool) or id_ == "":
            raise InputError(f'{where}: expected a text or a whole number under "id"')
        if str(id_) in places:
            raise InputError(f"{where}: has the id {id_!r} of {places[str(id_)]}")
        places[str(id_)] = where
        if lost := [name for name in taken if name in item and (keep is None or name in keep)]:
            advice = "--keep A,B,… names the fields to keep"
            raise InputError(f'{where}: has the field "{lost[0]}", which the result would replace; {advice}')
        rows.append((where, item))
    if not rows:
        raise InputError(f"{items if isinstance(items, Path) else 'items'}: empty; expected items")
    for name in keep or ():
        if not any(name in item for _, item in rows):
            raise OptionError("{keep} {name}: no item has this field", name=name)
    return rows


def render_prompts(rows: Sequence[tuple[str, dict[str, Any]]], template: Path | str) -> list[str]:
    """Render the template for all items, so that a wrong one is found before the first request."""
    text = reading.whole_text(template) if isinstance(template, Path) else template
    name = str(template) if isinstance(template, Path) else _TEMPLATE
    fields = {field for _, item in rows for field in item}
    templates = Templates({name: text}, sorted({*fields, "item"}))
    templates.check()
    prompts = []
    for where, item in rows:
        try:
            prompt = templates.render(name, {"item": item, **item})
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        if not prompt.strip():
            raise InputError(f"{where}: the template gives an empty prompt")
        prompts.append(prompt)
    return prompts


def _questions(
    rows: Sequence[tuple[str, dict[str, Any]]], prompts: Sequence[str], samples: int
) -> list[Question]:
    return [
        Question(prompt, Slot(str(item["id"]), sample))
        for (_, item), prompt in zip(rows, prompts, strict=True)
        for sample in range(1, samples + 1)
    ]


def _with_items(
    rows: Sequence[tuple[str, dict[str, Any]]], questions: Sequence[Question]
) -> Iterator[tuple[dict[str, Any], Question]]:
    samples = len(questions) // len(rows)
    return ((rows[number // samples][1], question) for number, question in enumerate(questions))


def _open_record(output: Path | None) -> ReplyRecord:
    """Open the record of unfinished replies, and add those of a finished output."""
    if output is None:
        return ReplyRecord()
    if output.exists() and not output.is_file():
        raise InputError(f"{output}: expected a file; replies cannot go to a pipe or a device")
    # The output first: a reply that was asked for again is in the partial file.
    finished = _finished(output)
    record = ReplyRecord(path_of(output))
    for where, row in finished:
        record.add_older(row, where)
    return record


def _finished(output: Path) -> list[tuple[str, dict[str, Any]]]:
    if not output.exists():
        return []
    try:
        rows = list(reading.objects(output))
    except InputError:
        rows = []
    return rows if all(isinstance(row.get("request"), dict) for _, row in rows) else []


def _check_others(output: Path, session: Session, questions: Sequence[Question], overwrite: bool) -> None:
    """Refuse an output, or a partial file, that has replies to other questions: they may have cost money."""
    if not overwrite and session.record.has_others([session.place_of(question) for question in questions]):
        file = output if output.exists() else path_of(output)
        raise InputError(
            f"{file}: has replies to other questions (another template, model or sampling, or other items); "
            "name another -o, or --overwrite drops them"
        )


def _ask(
    session: Session, questions: Sequence[Question], progress: Callable[[Progress], None]
) -> dict[Question, Reply]:
    replies = dict[Question, Reply]()
    begun, failed = time.monotonic(), 0
    with contextlib.closing(session.ask_all(questions)) as arriving:
        for question, reply in arriving:
            replies[question] = reply
            failed += reply.text is None
            asked = session.asked
            rate = asked / max(time.monotonic() - begun, 1e-9)
            progress(Progress(len(replies), len(questions), asked, failed, rate, session.cost))
    return replies


def _row(
    item: Mapping[str, Any],
    question: Question,
    reply: Reply,
    recorded: Mapping[str, Any],
    labels: Sequence[str],
    logprobs: bool,
    keep: Sequence[str] | None,
) -> dict[str, Any]:
    kept = {name: value for name, value in item.items() if keep is None or name in ("id", *keep)}
    row: dict[str, Any] = {**kept, "sample": question.slot.sample}
    if labels:
        predicted = None if reply.text is None else read_label(reply.text, labels)
        found = label_probabilities(reply.places or (), labels) if logprobs and predicted else None
        values = found.values if found else None
        row |= {
            "item": str(item["id"]),
            "run": str(question.slot.sample),
            "predicted": predicted,
            "probabilities": values and {label: round(value, 6) for label, value in values.items()},
        }
        counts = (reply.prompt_tokens, reply.completion_tokens)
        row["tokens"] = None if None in counts else sum(count or 0 for count in counts)
    return {
        **row, "reply": reply.text, "failure": reply.failure, "finish_reason": reply.finish_reason,
        "prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens,
        "seconds": reply.seconds, "request": recorded.get("request"),
        **({"logprobs": recorded["logprobs"]} if "logprobs" in recorded else {}),
    }  # fmt: skip


def describe(rows: Sequence[Mapping[str, Any]], labels: Sequence[str], logprobs: bool) -> list[str]:
    """Return messages on failed, cut, empty and unlabelled replies, and on labels without a probability."""
    failed = [row for row in rows if row["reply"] is None]
    messages = []
    if failed:
        reason, count = Counter(row["failure"] for row in failed).most_common(1)[0]
        messages.append(
            f"{len(failed):,} of {len(rows):,} requests failed for good "
            f"(item {failed[0]['id']}; {count:,} times: {reason})"
        )
    there = [row for row in rows if row["reply"] is not None]
    counts = {
        "cut off at the largest number of tokens": sum(row["finish_reason"] == "length" for row in there),
        "empty": sum(not row["reply"].strip() for row in there),
    }
    if labels:
        counts["without a label"] = sum(row["predicted"] is None for row in there)
    if logprobs:
        labelled = [row for row in there if row["predicted"] is not None]
        counts["with a label, but without its probability"] = sum(
            row["probabilities"] is None for row in labelled
        )
        places = [from_row(row).places or () for row in labelled]
        masses = [found.mass for each in places if (found := label_probabilities(each, labels))]
        counts["with less than half of the probability on the labels"] = sum(mass < 0.5 for mass in masses)
    return messages + [
        f"replies {kind}: {count:,} of {len(there):,}" for kind, count in counts.items() if count
    ]
