"""Rewriting of the items in a JSON or JSON-lines file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import read_json_lines, read_lines
from simllm.perturb.code.default_rules import LANGUAGES
from simllm.perturb.code.rewrite_settings import RewritePlan

_CARRIED = ("reference", "label", "nll", "group")  # the fields of an item that its variant keeps


def read_items(file: Path, language: str | None = None) -> Iterator[dict[str, Any]]:
    """Read items from a JSON-lines file, or from a `.json` file with one object that maps ids to code.

    `language` is the language of items without this field; a `.json` file needs it. Further fields are kept,
    and `where` is added, the position in the file for error messages. A missing field, an unknown language or
    a repeated id raises `InputError`.
    """
    seen: set[str] = set()
    rows = _read_object(file) if file.name.endswith(".json") else read_json_lines.objects(file)
    for where, row in rows:
        if language and "language" not in row:
            row["language"] = language
        for name in ("id", "language", "source"):
            read_json_lines.text_under(row, name, where)
        if row["id"] in seen:
            raise InputError(f"{where}: the id {row['id']!r} stands twice")
        # An item may bring its own new names, which come before those of the plan.
        names = row.get("names") or {}
        if not isinstance(names, dict) or not all(isinstance(new, str) for new in names.values()):
            raise InputError(f"{where}: expected an object of new names by old names under names")
        if row["language"] not in LANGUAGES:
            raise InputError(f"{where}: expected the language java or python, not {row['language']!r}")
        seen.add(row["id"])
        yield {**row, "where": where}


def _read_object(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the position, for error messages, and the item of each entry of a JSON object."""
    text = "\n".join(line for _, line in read_lines.lines(file))
    for name, source in read_json_lines.parsed(text, str(file)).items():
        yield f"{file}, {name}", {"id": name, "source": source}


def vary_items(
    items: Iterable[dict[str, Any]], plan: RewritePlan, each_rule: bool = False
) -> Iterator[dict[str, Any]]:
    """Rewrite each item, and yield its row: fields of the item, a `status`, the attributes of `Rewrite`.

    With `each_rule`, an item also gets a variant for each rule alone, whose row has the rule's name under
    `arm`. The status is "rewritten", "unchanged" or "unparsed". An unparsed item has one row, with a
    `reason`.
    """
    for item in items:
        kept = {name: item[name] for name in ("id", "language", *_CARRIED) if name in item}
        for arm, own in plan.arms() if each_rule else [(None, plan)]:
            row = kept | ({"arm": arm} if arm else {})
            try:
                found = own.with_names(item.get("names") or {}).rewrite(item["source"], item["language"])
            except InputError as error:
                # No other plan can parse the item either.
                yield row | {"status": "unparsed", "reason": str(error)}
                break
            status = "unchanged" if found.text == item["source"] else "rewritten"
            edits = [list(edit) for edit in found.edits]
            # "parsed" is the weakest verdict: the variant has been parsed, but not run.
            yield row | {"status": status, **asdict(found), "edits": edits, "proof": {"verdict": "parsed"}}
