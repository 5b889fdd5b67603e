"""New names that a language model proposes from the code: one map of names for each item.

A proposal is checked before it is used. Names without a usable proposal get one from the namer of the plan.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.llm.answers import without_thinking
from simllm.llm.generation import render_prompts
from simllm.llm.model import Model
from simllm.llm.records import Slot
from simllm.llm.session import Question, Session
from simllm.perturb.code.names import is_name, words_of
from simllm.perturb.code.rewriting import find_symbols
from simllm.perturb.code.rules import RENAMES, find_rules
from simllm.perturb.code.variants import PROPOSED

TEMPLATE = Path(__file__).parent / "data" / "names_request.j2"
_LONGEST_NAME = 64  # characters; longer ones are sentences, or a model that repeats itself
_BATCH = 256  # items that are asked about at the same time


@dataclass(frozen=True, kw_only=True)
class NamesModel(Model):
    """A language model that proposes names.

    Attributes:
        template: A jinja2 template of the prompt over `code`, `language`, `names` (a list) and the fields of
            an item; None for the included one.
    """

    template: str | None = None


@dataclass
class ProposalCounts:
    """Counts of the names that a model proposed.

    Attributes:
        wanted: The names that can be renamed, in all items.
        usable: The proposals that passed all checks.
        refused: The other names by reason.
    """

    wanted: int = 0
    usable: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def add(self, other: ProposalCounts) -> None:
        """Count the proposals of one more item."""
        self.wanted += other.wanted
        self.usable += other.usable
        self.refused += other.refused

    def __str__(self) -> str:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.refused.most_common())
        rest = f"; other names instead for {reasons}" if reasons else ""
        return f"the model's names: {self.usable:,} of {self.wanted:,} usable{rest}"


def propose_names(
    items: Iterable[dict[str, Any]],
    rules: Sequence[str],
    session: Session,
    template: Path = TEMPLATE,
) -> Iterator[tuple[dict[str, Any], ProposalCounts]]:
    """Yield each item with usable proposals under `PROPOSED`, and the counts of its proposals.

    Raises:
        InputError: The template is wrong, or the endpoint refuses all requests.
        LostReplyError: The endpoint is lost, or a limit is reached; the recorded replies remain.
    """
    remaining = iter(items)
    while batch := list(islice(remaining, _BATCH)):
        wanted = [_wanted(item, rules) for item in batch]
        asked = [(item, names) for item, names in zip(batch, wanted, strict=True) if names]
        rows = []
        for item, names in asked:
            rows.append((item["where"], {**_fields(item), "code": item["source"], "names": names}))
        prompts = render_prompts(rows, template) if rows else []
        questions = [
            Question(prompt, Slot(item["id"])) for (item, _), prompt in zip(asked, prompts, strict=True)
        ]
        replies = dict(session.ask_all(questions))
        session.check_complete()
        found = {
            item["id"]: replies[question].text for (item, _), question in zip(asked, questions, strict=True)
        }
        for item, names in zip(batch, wanted, strict=True):
            proposed, counts = usable_names(found.get(item["id"]), names, item)
            yield {**item, PROPOSED: proposed}, counts


def _fields(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in ("source", "where", "names")}


def _wanted(item: Mapping[str, Any], rules: Sequence[str]) -> list[str]:
    """Return the names of an item that can be renamed and have no new name; none of unparsed code."""
    kinds = {RENAMES[rule] for rule in rules if rule in RENAMES}
    try:
        symbols = find_symbols(item["source"], item["language"], item.get("around") or "")
    except InputError:
        return []
    given = item.get("names") or {}
    return list(dict.fromkeys(one.name for one in symbols if one.kind in kinds and one.name not in given))


def usable_names(
    reply: str | None, names: Sequence[str], item: Mapping[str, Any]
) -> tuple[dict[str, str], ProposalCounts]:
    """Return those proposals of a reply that can be new names, by old names, and the counts of all.

    A new name is an identifier, no reserved word, differs from all words of the code and of the code around
    it, and stands for one old name only. Code in ASCII gets ASCII names: letters of other scripts can look
    like its own.
    """
    reserved = find_rules(item["language"]).reserved
    words = words_of(f"{item['source']}\n{item.get('around') or ''}")
    proposed: dict[str, str] = {}
    counts = ProposalCounts(wanted=len(names))
    told = _read_reply(reply or "", names)
    for name in names:
        new = told.get(name)
        if new is None:
            reason = "without a reply" if reply is None else "without a proposal"
        elif new == name:
            reason = "with the old name again"
        elif not is_name(new):
            reason = "with no identifier"
        elif len(new) > _LONGEST_NAME:
            reason = f"with more than {_LONGEST_NAME} characters"
        elif not new.isascii() and all(map(str.isascii, words)):
            reason = "with letters of another script"
        elif new in reserved:
            reason = "with a reserved word"
        elif new in words or new in (item.get("names") or {}).values():
            reason = "with a word of the code"
        elif new in proposed.values():
            reason = "with the name of another one"
        else:
            proposed[name] = new
            counts.usable += 1
            continue
        counts.refused[reason] += 1
    return proposed, counts


def _read_reply(reply: str, names: Sequence[str]) -> dict[str, str]:
    """Read new names by old ones: from JSON, or from lines such as `old -> new`; the last one counts."""
    text = without_thinking(reply)
    found = {}
    for name in names:
        pattern = (
            rf"(?<![\w$])[\"'`]?{re.escape(name)}[\"'`]?[ \t]*(?::|->|=>|=|→)[ \t]*"
            r"(?:\"([^\"\n]*)\"|'([^'\n]*)'|`([^`\n]*)`|([^\s,;{}()\"'`]+))"
        )
        for match in re.finditer(pattern, text):
            found[name] = next(part for part in match.groups() if part is not None).strip()
    return found
