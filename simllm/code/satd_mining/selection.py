"""The selection of items among repayments: the later rules, the judge, and the funnel of counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from simllm.code.satd_mining.judge import VERDICTS, Prompts, quality, verdict
from simllm.code.satd_mining.repayments import LATER_RULES, RULES, Repayment, fulfilled_later_rules
from simllm.io import output_file
from simllm.llm.model import content_hash
from simllm.llm.session import Session

JUDGED = "the model says that the change repays the debt"
_SHOWN = ("repository", "commit", "path", "function")  # beside an answer of the judge


@dataclass
class Funnel:
    """Counts of what remains after each step of a search.

    Attributes:
        repositories: The number of repositories; of a search in items, 0.
        items: In a search in items, their number; None for repositories.
        skipped: The repositories that were left out, and why: one is unreadable, shallow or takes too long.
        remaining: For each rule, the number of deleted comments that fulfil it and all earlier rules.
        languages: The same for each language.
        splits: The number of items in each split.
        verdicts: The number of answers with each verdict of the judge; None without a judge.
        failures: Why there is no usable answer, for each item with the verdict "failed".
        agreement: How well verdicts agree with labels of people (see `judge.quality`); None without labels.
    """

    repositories: int = 0
    items: int | None = None
    skipped: dict[str, str] = field(default_factory=dict)
    remaining: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*RULES, *LATER_RULES), 0))
    languages: dict[str, dict[str, int]] = field(default_factory=dict)
    splits: dict[str, int] = field(default_factory=dict)
    verdicts: dict[str, int] | None = None
    failures: list[str] = field(default_factory=list)
    agreement: dict[str, Any] | None = None

    def count(self, language: str, remaining: Mapping[str, int]) -> None:
        """Add counts of a language to `remaining` and `languages`."""
        own = self.languages.setdefault(language, dict.fromkeys(self.remaining, 0))
        for rule, number in remaining.items():
            self.remaining[rule] += number
            own[rule] += number


class Source(Protocol):
    """Source of repayments: repositories, or items."""

    def funnel(self) -> Funnel:
        """Return a new funnel, without any counts of rules."""

    def repayments(self, funnel: Funnel) -> Iterator[tuple[dict[str, Any], Repayment]]:
        """Yield each change that fulfils `RULES`, as an item and as a repayment; count all in `funnel`."""


def later_rules(source: Source, funnel: Funnel) -> Iterator[dict[str, Any]]:
    """Yield the items that fulfil the later rules, too; count them in `funnel`."""
    seen: set[bytes] = set()
    for item, repayment in source.repayments(funnel):
        fulfilled = fulfilled_later_rules(repayment, seen)
        funnel.count(repayment.language, dict.fromkeys(LATER_RULES[:fulfilled], 1))
        if fulfilled == len(LATER_RULES):
            yield item


def ask_judge(source: Source, session: Session, prompts: Prompts) -> Iterator[None]:
    """Ask the judge about the items that fulfil all rules; yield after each answer."""
    questions = [prompts.question(item) for item in later_rules(source, source.funnel())]
    with closing(session.ask_all(questions)) as replies:
        for _ in replies:
            yield


def write_items(
    output: Path,
    source: Source,
    session: Session | None = None,
    prompts: Prompts | None = None,
    labels: Mapping[str, bool] | None = None,
) -> Funnel:
    """Write the items that fulfil all rules.

    With the session of a judge, which has answered about all items, only those with the verdict "yes" are
    written, and the record of answers gets verdicts and ids of items. `labels` are what people say.
    """
    funnel = source.funnel()
    about: dict[str, dict[str, str]] = {}  # by the hash of the question
    verdicts: dict[str, str] = {}  # by the id of the item
    if session:
        funnel.remaining[JUDGED] = 0
        funnel.verdicts = dict.fromkeys(VERDICTS, 0)

    def is_kept(item: Mapping[str, Any]) -> bool:
        if not session or not prompts or funnel.verdicts is None:
            return True
        question = prompts.question(item)
        answer = session.ask(question)  # recorded
        found = verdict(answer)
        shown = {name: item[name] for name in _SHOWN if name in item}
        about[content_hash(session.place_of(question)[0])] = {"item": item["id"], **shown, "verdict": found}
        verdicts[str(item["id"])] = found
        funnel.verdicts[found] += 1
        if answer.failure:
            funnel.failures.append(answer.failure)
        if found == "yes":
            funnel.count(item["language"], {JUDGED: 1})
        return found == "yes"

    def lines() -> Iterator[str]:
        # The funnel is counted while the lines are written, and is complete only after the file.
        for item in later_rules(source, funnel):
            if is_kept(item):
                split = item.get("split")
                if isinstance(split, str):
                    funnel.splits[split] = funnel.splits.get(split, 0) + 1
                yield json.dumps(item) + "\n"

    output_file.write(output, lines())
    if session and session.record.file:
        rows = session.record.rows()
        output_file.write(
            session.record.file,
            (json.dumps({**row, **about.get(content_hash(row["request"]), {})}) + "\n" for row in rows),
        )
    if labels is not None:
        funnel.agreement = quality(verdicts, labels)
    return funnel
