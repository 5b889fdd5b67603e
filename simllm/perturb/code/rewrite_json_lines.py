"""Rewriting of the pieces of code in a JSON-lines file; the rewritten code behaves the same.

For example, variables are renamed, and a `for` loop becomes a `while` loop. A piece of code with its id and
its language is called an item.
"""

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
    """Read pieces of source code, such as functions, from a JSON or JSON-lines file.

    Args:
        file: The file. If the name ends in `.json`, the file has a JSON object that maps an id to each piece
            of code. Otherwise, it has JSON lines, each with `id`, `language` and `source` (the code). Further
            fields of a line, such as `label`, are kept.
        language: The language of all pieces of code without the field `language`: "java" or "python". A
            `.json` file needs this argument, because it has no such field.

    Yields:
        A dict for each piece of code, called an item. It has the fields from the file, and the added key
        `where`: the position in the file, for error messages.

    Raises:
        InputError: The file cannot be read, an item lacks a field or has an unknown language, or two items
            have the same id.
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
        names = row.get("names") or {}
        if not isinstance(names, dict) or not all(isinstance(new, str) for new in names.values()):
            raise InputError(f"{where}: expected an object of new names by old names under names")
        if row["language"] not in LANGUAGES:
            raise InputError(f"{where}: expected the language java or python, not {row['language']!r}")
        seen.add(row["id"])
        yield {**row, "where": where}


def _read_object(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read pieces of source code from a file with one JSON object, which maps an id to each piece's code.

    Yields:
        For each piece of code: a text that says where the piece is, such as "functions.json, f1", for error
        messages; and a dict with the keys `id` and `source` (the code).
    """
    text = "\n".join(line for _, line in read_lines.lines(file))
    for name, source in read_json_lines.parsed(text, str(file)).items():
        yield f"{file}, {name}", {"id": name, "source": source}


def vary_items(
    items: Iterable[dict[str, Any]], plan: RewritePlan, each_rule: bool = False
) -> Iterator[dict[str, Any]]:
    """Rewrite the source of each item, and yield a row: a dict that describes the rewritten code.

    The rewritten code is called a variant.

    Args:
        items: Dicts, as `read_items` yields them. The key `source` has the code.
        plan: The settings of the rewrites.
        each_rule: If False, each item gets one variant, which all rules of the plan together rewrite. If
            True, each item also gets one variant for each rule, which this rule alone rewrites. The row of
            such a variant has the name of the rule under the key `arm`.

    Yields:
        A row with the `id` and the `language` of its item, and those of the item's fields `reference`,
        `label`, `nll` and `group` that the item has. Its `status` is "rewritten" or "unchanged". Each
        attribute of the class `Rewrite` is a further key, such as `text` (the code of the variant). The key
        `proof` has the value {"verdict": "parsed"}, because the variant has been parsed, but not run.

        An item that cannot be parsed, or is nested too deeply, has a single row. Its `status` is "unparsed",
        and `reason` has the error message.
    """
    for item in items:
        kept = {name: item[name] for name in ("id", "language", *_CARRIED) if name in item}
        for arm, own in plan.arms() if each_rule else [(None, plan)]:
            row = kept | ({"arm": arm} if arm else {})
            try:
                found = own.with_names(item.get("names") or {}).rewrite(item["source"], item["language"])
            except InputError as error:
                yield row | {"status": "unparsed", "reason": str(error)}
                break
            status = "unchanged" if found.text == item["source"] else "rewritten"
            edits = [list(edit) for edit in found.edits]
            yield row | {"status": status, **asdict(found), "edits": edits, "proof": {"verdict": "parsed"}}
