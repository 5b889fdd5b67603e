"""Variants of many sources: the items of a JSON-lines file, or the files of a folder."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import files
from simllm.perturb.code.new_names import Namer, synonyms
from simllm.perturb.code.rewriting import DEFAULT_RULES, Rewrite, check_rules, rewrite

SUFFIXES = {".java": "java", ".py": "python"}
CARRIED = ("reference", "label", "nll", "group")  # the fields of an item that its variant keeps
RECORD = "variants.jsonl"  # the file of a folder of variants with what was done to each file


@dataclass(frozen=True)
class RewritePlan:
    """How sources are rewritten; the arguments of `rewrite`.

    Raises:
        InputError: A rule is unknown, or the share lies outside 0 to 1.
    """

    rules: Sequence[str] = DEFAULT_RULES
    namer: Namer = synonyms
    share: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_rules(self.rules, self.share)

    def rewrite(self, source: str, language: str) -> Rewrite:
        """Rewrite a source; rules that the language lacks are left out."""
        return rewrite(source, language, self.rules, self.namer, share=self.share, seed=self.seed)

    def arms(self) -> Iterator[tuple[str | None, RewritePlan]]:
        """Yield the plan itself, under None, and a plan for each rule alone, under its name."""
        yield None, self
        yield from ((rule, replace(self, rules=(rule,))) for rule in self.rules)


@dataclass
class VariantCounts:
    """What happened to the sources.

    Attributes:
        status: The number of sources that were "rewritten", stayed "unchanged", are "unparsed", or whose
            variant was "refuted".
        rewritten: The number of places that each rule has rewritten.
        skipped: The number of places that each rule left as they are.
        verdicts: The number of variants with each verdict of a proof.
        twins: The numbers of wrong twins that were run, and that were refuted.
    """

    status: Counter[str] = field(default_factory=Counter)
    rewritten: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    twins: tuple[int, int] = (0, 0)

    def add(self, row: dict[str, Any]) -> None:
        """Count a row of `vary_items` or `vary_files`."""
        self.status[row["status"]] += 1
        self.rewritten.update(row.get("counts", {}))
        self.skipped.update(place["rule"] for place in row.get("skipped", ()))
        proof = row.get("proof", {})
        self.verdicts.update([proof["verdict"]] if proof else [])
        self.twins = (self.twins[0] + proof.get("twins", 0), self.twins[1] + proof.get("refuted_twins", 0))


def read_items(file: Path, language: str | None = None) -> Iterator[dict[str, Any]]:
    """Read items with code.

    Args:
        file: JSON lines with `id`, `language` and `source`, and possibly the fields `CARRIED`. Or a JSON
            object of sources by their ids, if the name ends in `.json`.
        language: The language of items that name none.

    Yields:
        The items, with `where`: the place for error messages.

    Raises:
        InputError: The file cannot be read, an item lacks a field, or two items have the same id.
    """
    seen: set[str] = set()
    rows = _read_object(file) if file.name.endswith(".json") else files.objects(file)
    for where, row in rows:
        if language and "language" not in row:
            row["language"] = language
        for name in ("id", "language", "source"):
            files.text_under(row, name, where)
        if row["id"] in seen:
            raise InputError(f"{where}: the id {row['id']!r} stands twice")
        if row["language"] not in SUFFIXES.values():
            raise InputError(f"{where}: expected the language java or python, not {row['language']!r}")
        seen.add(row["id"])
        yield {**row, "where": where}


def _read_object(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read a JSON object of sources by their ids."""
    text = "\n".join(line for _, line in files.lines(file))
    for name, source in files.parsed(text, str(file)).items():
        yield f"{file}, {name}", {"id": name, "source": source}


def vary_items(
    items: Iterable[dict[str, Any]], plan: RewritePlan, each_rule: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield the variant of each item as a row.

    A row has `id`, `language`, `status` and the fields `CARRIED`. If the source was parsed, the row has the
    attributes of `Rewrite`, too; otherwise, it has a `reason`.

    Args:
        items: Items, as `read_items` yields them.
        plan: How to rewrite.
        each_rule: Whether to yield a further variant for each rule alone, with the rule under `arm`.
    """
    for item in items:
        kept = {name: item[name] for name in ("id", "language", *CARRIED) if name in item}
        for arm, own in plan.arms() if each_rule else [(None, plan)]:
            row = kept | ({"arm": arm} if arm else {})
            try:
                found = own.rewrite(item["source"], item["language"])
            except InputError as error:
                yield row | {"status": "unparsed", "reason": str(error)}
                break
            status = "unchanged" if found.text == item["source"] else "rewritten"
            edits = [list(edit) for edit in found.edits]
            yield row | {"status": status, **asdict(found), "edits": edits, "proof": {"verdict": "parsed"}}


def vary_files(paths: Sequence[Path], plan: RewritePlan, out: Path) -> Iterator[dict[str, Any]]:
    """Write variants of files into a folder, and copies of the files in other languages.

    The content of a single folder goes directly into `out`; of several paths, each goes under its own name.
    The folder gets a file `variants.jsonl` with a row for each rewritten file, too.

    Args:
        paths: Files and folders. Hidden files and folders are left out.
        plan: How to rewrite.
        out: An existing folder.

    Yields:
        The rows, as `vary_items` yields them; the id is the path in the folder.

    Raises:
        InputError: A file cannot be read or has a syntax error, or two paths have the same name.
    """
    rows = []
    for name, path in find_files(paths):
        target = out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            content = path.read_bytes()
            text = content.decode() if path.suffix in SUFFIXES else ""
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: cannot be read ({getattr(error, 'strerror', 'not UTF-8')})") from None
        if path.suffix in SUFFIXES:
            item = {"id": name, "language": SUFFIXES[path.suffix], "source": text}
            (row,) = vary_items([item], plan)
            if row["status"] == "unparsed":
                line, _, reason = row["reason"].removeprefix("line ").partition(": ")
                raise InputError(f"{path}:{line}: {reason}")
            yield row
            content = row["text"].encode()
            rows.append(row)
        target.write_bytes(content)
    files.write(out / RECORD, (json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def find_files(paths: Sequence[Path]) -> list[tuple[str, Path]]:
    """Return the files of paths with their places in a folder of variants.

    Raises:
        InputError: A path does not exist, there is nothing to rewrite, or two files get the same place.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        if path.is_file():
            own = [(path.name, path)]
        else:
            prefix = "" if len(paths) == 1 else f"{path.resolve().name}/"
            own = [(prefix + file.relative_to(path).as_posix(), file) for file in _files(path)]
        for name, file in own:
            if name in found or name == RECORD:
                raise InputError(f"{file}: its variant would replace another file, {name}")
            found[name] = file
    if not any(file.suffix in SUFFIXES for file in found.values()):
        raise InputError(f"{paths[0]}: no file ending in {' or '.join(SUFFIXES)}")
    return sorted(found.items())


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, without hidden ones and links."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path
