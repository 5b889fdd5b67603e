"""`simllm generate`: ask a language model a question about each item, and write its replies."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simllm.cli import model_options, results, shared_options
from simllm.cli.model_options import ModelOptions
from simllm.errors import InputError
from simllm.io import output_file, packages
from simllm.llm import local
from simllm.llm.model import Model

if TYPE_CHECKING:
    from simllm.llm.generation import Progress

FORMATS = ("text", "json")
MODEL = ("NAME", "the name of the model at the endpoint")
EXAMPLES = """examples:
  simllm generate items.jsonl --template satd-repay --base-url http://localhost:8000/v1 --model M
    --samples 5 -o replies.jsonl
  simllm generate tests.jsonl --template classify.j2 --model-file m.toml --labels pass,fail --logprobs
    -o predictions.jsonl
  simllm generate items.jsonl --template satd-repay --replay replies.jsonl -o again.jsonl
The API key comes from the environment variable OPENAI_API_KEY. A stopped run is continued by the same
command. The exit status is 1 if replies are missing, or if no request got a reply.
"""


@dataclass(frozen=True, kw_only=True)
class Options(ModelOptions):
    """The options of `simllm generate`."""

    items: Path
    template: str
    local: Path | None = None
    context: int | None = None
    samples: int | None = None
    labels: str | None = None
    logprobs: bool = False
    keep: str | None = None
    parallel: int | None = None


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm generate` to its parser."""
    command.add_argument("items", type=Path, metavar="FILE", help="JSON lines, each with an id")
    command.add_argument(
        "--template", required=True, metavar="FILE",
        help="jinja2 over the fields of an item, or the name of a ready template, such as satd-repay",
    )  # fmt: skip
    model_options.add_model(command)
    command.add_argument(
        "--local", type=Path, metavar="FILE", help="a GGUF file, which llama.cpp serves here for this run"
    )
    command.add_argument(
        "--context",
        type=int,
        metavar="N",
        help="with --local: tokens of a request with its reply; default: 4096",
    )
    command.add_argument("--samples", type=int, metavar="N", help="replies to each item; default: 1")
    command.add_argument(
        "--labels", metavar="A,B,…", help="find one of these labels in each reply, for evaluate classifiers"
    )
    command.add_argument(
        "--logprobs", action="store_true", help="with --labels: their probabilities, from log-probabilities"
    )
    command.add_argument("--keep", metavar="A,B,…", help="fields of items to keep; default: all")
    command.add_argument("--parallel", type=int, metavar="N", help="requests at the same time; default: 8")


def run(options: Options) -> int:
    """Run `simllm generate`: write a line for each reply.

    The exit status is 1 if no request got a reply, else 0.
    """
    with packages.require_llm_extra():
        from simllm.llm.generation import generate
        from simllm.llm.templates import find_template
    if options.output is None:
        raise InputError("expected -o FILE, to write the replies to")
    model = _model(options)
    with contextlib.ExitStack() as held:
        if model and options.local:
            # Before the model is loaded: a wrong output is an error now.
            output_file.check_output(options.output, overwrite=True)
            model = held.enter_context(local.served(options.local, model, options.context or local.CONTEXT))
        progress = held.enter_context(_progress(options))
        messages = held.enter_context(results.collected())
        rows = generate(
            options.items,
            find_template(options.template),
            model,
            output=options.output,
            samples=options.samples,
            labels=_list(options.labels) or (),
            logprobs=options.logprobs,
            replay=options.replay,
            retry_failed=options.retry_failed,
            keep=_list(options.keep),
            overwrite=options.overwrite,
            progress=progress,
        )
    counts, labels = _counts(rows, bool(options.labels))
    told = results.tell(messages)
    if options.format == "json":
        print(json.dumps({**counts, **({"labels": labels} if labels else {}), **told}, indent=1))
    elif not options.quiet:
        both = [*counts.items(), *labels.items()]
        print(f"simllm: {', '.join(f'{name} {value:,}' for name, value in both)}", file=sys.stderr)
    return 0 if any(row["reply"] is not None for row in rows) else 1


def _model(options: Options) -> Model | None:
    """Return the model that the options describe; None for a replay."""
    model_options.check_replay(options, "local", "context", "parallel")
    if options.replay is not None:
        return None
    if options.local is None:
        if options.context is not None:
            raise InputError("--context goes with --local FILE")
        return model_options.read_given(options)
    shared_options.refuse(
        options, ["base_url", "model_file"], "names another place of the model than --local FILE"
    )
    if options.parallel is None:
        options = replace(options, parallel=local.PARALLEL)
    return model_options.read_given(options)


def _list(value: str | None) -> list[str] | None:
    return None if value is None else [name.strip() for name in value.split(",")]


def _counts(rows: list[dict[str, Any]], has_labels: bool) -> tuple[dict[str, int], dict[str, int]]:
    """Count replies and tokens, and labels apart from them: a label may be called "failed"."""
    counts = {
        "replies": sum(row["reply"] is not None for row in rows),
        "failed": sum(row["reply"] is None for row in rows),
    }
    for name in ("prompt_tokens", "completion_tokens"):
        counts[name.replace("_", " ")] = sum(row[name] or 0 for row in rows)
    if not has_labels:
        return counts, {}
    found = Counter(row["predicted"] for row in rows if row["reply"] is not None)
    labels = {str(label): count for label, count in sorted(found.items(), key=str) if label is not None}
    return counts, {**labels, "without a label": found[None]}


@contextlib.contextmanager
def _progress(options: Options) -> Iterator[Callable[[Progress], None]]:
    """Show a bar with rate, time left, failures and cost while a `with` block works."""
    from tqdm import tqdm

    with tqdm(unit=" replies", disable=not options.has_bar) as bar, shared_options.resumable():

        def advance(now: Progress) -> None:
            if bar.disable:
                return
            if bar.total is None:
                bar.total = now.total
            if now.asked == 0:
                # Recorded replies are no measure of the rate: the time left is that of the others.
                bar.initial = bar.n = now.done
            facts = {"failed": now.failed} if now.failed else {}
            if now.cost is not None:
                facts["cost"] = f"{now.cost:.4g}"  # type: ignore[assignment]
            bar.set_postfix(facts, refresh=False)
            bar.update(now.done - bar.n)

        yield advance
