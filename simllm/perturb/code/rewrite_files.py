"""Rewriting of many sources: the items of a JSON-lines file, or the files of a folder."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from simllm.errors import InputError
from simllm.io import files
from simllm.io.folder_marker import MARKER
from simllm.perturb.code.new_names import Namer, synonyms
from simllm.perturb.code.rewriting import DEFAULT_RULES, Rewrite, check_rules, rewrite

SUFFIXES = {".java": "java", ".py": "python"}
CARRIED = ("reference", "label", "nll", "group")  # the fields of an item that its variant keeps
RECORD = "variants.jsonl"  # the file in the output folder that records the changes to each source file
_NOT_COPIED = (".git", MARKER)  # git's own files, and the marker of simllm
_SHOWN = 5  # unparsed files that warnings name


@dataclass(frozen=True)
class RewritePlan:
    """The settings with which many sources are rewritten.

    Attributes:
        rules: The names of the rules to apply, in this order.
        namer: The function that proposes new names.
        share: The probability, from 0 to 1, of rewriting a place that a rule can rewrite.
        seed: The seed for choosing the places at random.
        is_file: Whether each source is a file, even if it holds a single function.

    Raises:
        InputError: There is no rule, a rule is unknown, or the share is not between 0 and 1.
    """

    rules: Sequence[str] = DEFAULT_RULES
    namer: Namer = synonyms
    share: float = 1.0
    seed: int = 0
    is_file: bool = False

    def __post_init__(self) -> None:
        check_rules(self.rules, self.share)

    def rewrite(self, source: str, language: str) -> Rewrite:
        """Rewrite a source with the settings of this plan.

        Rules that do not exist for the language are ignored. Python, for example, has no braces to add.

        Args:
            source: The code.
            language: The language of the code: "java" or "python".
        """
        return rewrite(
            source, language, self.rules, self.namer, share=self.share, seed=self.seed, is_file=self.is_file
        )

    def arms(self) -> Iterator[tuple[str | None, RewritePlan]]:
        """Yield this plan and, for each of its rules, a plan that applies only this rule.

        Each plan is one arm of an experiment: comparing the rewritten code of the plans shows the effect of
        each rule.

        Yields:
            Pairs of a name and a plan. The first pair is (None, this plan). In the other pairs, the name is
            the name of the rule.
        """
        yield None, self
        yield from ((rule, replace(self, rules=(rule,))) for rule in self.rules)


@dataclass
class VariantCounts:
    """Counts over the variants of many sources.

    A variant is rewritten code. To check a variant, the variant and the original code are run on the same
    inputs. The check also runs mutants, which are variants with a deliberate mistake. They show whether
    the inputs can reveal a mistake.

    Attributes:
        status: The number of variants with each status: "rewritten"; "unchanged"; "unparsed", if the source
            has a syntax error; or "refuted", if the check shows that the variant behaves differently.
        rewritten: For each rule, the number of places that it rewrote.
        skipped: For each rule, the number of places that it could not rewrite safely.
        verdicts: The number of variants with each result of the check, such as "proven".
        mutants: Two numbers: how many mutants were run, and how many of them behaved differently from the
            original.
    """

    status: Counter[str] = field(default_factory=Counter)
    rewritten: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    mutants: tuple[int, int] = (0, 0)

    def add(self, row: dict[str, Any]) -> None:
        """Add one more variant to the counts.

        Args:
            row: The dict that describes the variant, as `vary_items`, `vary_files` or `prove_variants` yields
                it.
        """
        self.status[row["status"]] += 1
        self.rewritten.update(row.get("counts", {}))
        self.skipped.update(place["rule"] for place in row.get("skipped", ()))
        proof = row.get("proof", {})
        self.verdicts.update([proof["verdict"]] if proof else [])
        run, killed = self.mutants
        self.mutants = run + proof.get("mutants", 0), killed + proof.get("killed_mutants", 0)


def read_items(file: Path, language: str | None = None) -> Iterator[dict[str, Any]]:
    """Read sources of code from a JSON file.

    Args:
        file: The file. If the name ends in `.json`, the file has a JSON object that maps ids to sources.
            Otherwise, it has JSON lines, each with `id`, `language` and `source`. Further fields of a line,
            such as `label`, are kept.
        language: The language of all sources without the field `language`: "java" or "python". A `.json` file
            needs this argument, because it has no such field.

    Yields:
        A dict for each source, called an item. It has the fields from the file, and the added key `where`:
        the position in the file, for error messages.

    Raises:
        InputError: The file cannot be read, an item lacks a field or has an unknown language, or two items
            have the same id.
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
    """Read a JSON object that maps ids to sources.

    Yields:
        For each source: its position in the file, for error messages; and a dict with its `id` and `source`.
    """
    text = "\n".join(line for _, line in files.lines(file))
    for name, source in files.parsed(text, str(file)).items():
        yield f"{file}, {name}", {"id": name, "source": source}


def vary_items(
    items: Iterable[dict[str, Any]], plan: RewritePlan, each_rule: bool = False
) -> Iterator[dict[str, Any]]:
    """Rewrite the source of each item, and yield a row: a dict that describes the rewritten code.

    The rewritten code is called a variant.

    Args:
        items: Dicts, as `read_items` yields them. The key `source` has the code.
        plan: The settings of the rewrites.
        each_rule: Whether to make more variants of each item, one for each rule of the plan. Such a variant
            is rewritten by this rule only. Its row has the name of the rule under the key `arm`.

    Yields:
        A row with the `id`, the `language` and the optional fields of its item, such as `label`. Its `status`
        is "rewritten" or "unchanged". Each attribute of `Rewrite` is a further key, such as `text`. The key
        `proof` has the value {"verdict": "parsed"}: the variant has been parsed, but not run.

        An item that cannot be parsed, or is nested too deeply, has a single row. Its `status` is "unparsed",
        and `reason` has the error message.
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


class FoundFile(NamedTuple):
    """A file or symbolic link that an output folder gets.

    Attributes:
        name: The relative path in the output folder.
        path: The file or link itself.
        action: "rewrite" for a source file, "copy" for another file, and "link" for a symbolic link.
    """

    name: str
    path: Path
    action: str


def vary_files(paths: Sequence[Path], plan: RewritePlan, out: Path) -> Iterator[dict[str, Any]]:
    """Write rewritten variants of Java and Python files into a folder; copy all other files unchanged.

    If `paths` is a single folder, its content goes directly into `out`. Otherwise, each file or folder in
    `paths` keeps its own name inside `out`. The permissions of files are kept, too, so that scripts can still
    be run. The file `variants.jsonl` in `out` gets a row (a dict that describes the variant) for each source
    file.

    A source file that cannot be parsed, or is nested too deeply, is copied unchanged, with a warning.

    Args:
        paths: Files and folders.
        plan: The settings of the rewrites.
        out: An existing folder.

    Yields:
        The row of each source file, as `vary_items` yields it. Its id is the file's path in `out`.

    Raises:
        InputError: A file cannot be read, no source file can be parsed, or two files would get the same path
            in `out`.
    """
    plan = replace(plan, is_file=True)
    rows = []
    problems = []
    links = []
    for name, path, action in find_files(paths):
        target = out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if action == "link":
            links.append((target, path))
            continue
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from None
        if action == "rewrite":
            text = content.decode(errors="surrogateescape")  # `rewrite` names the line that is not UTF-8
            (row,) = vary_items([{"id": name, "language": SUFFIXES[path.suffix], "source": text}], plan)
            if row["status"] == "unparsed":
                line, _, reason = row["reason"].removeprefix("line ").partition(": ")
                problems.append(f"{files.printable(path)}:{line}: {reason}")
            else:
                content = row["text"].encode()
            yield row
            rows.append(row)
        target.write_bytes(content)
        shutil.copymode(path, target)
    if len(problems) == len(rows):
        raise InputError(problems[0] + ("; no other file can be parsed" if len(rows) > 1 else ""))
    _warn_unparsed(problems)
    files.write(out / RECORD, (json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    _recreate_links(links, out)  # last, so that nothing is written through a link


def _warn_unparsed(problems: Sequence[str]) -> None:
    """Warn about source files that cannot be parsed: name the first ones, and count the others.

    Args:
        problems: The file, line and reason of each problem.
    """
    for problem in problems[:_SHOWN]:
        warnings.warn(f"{problem}; copied unchanged", stacklevel=3)
    if more := len(problems[_SHOWN:]):
        warnings.warn(f"{more:,} more unparsed files are copied unchanged; see {RECORD}", stacklevel=3)


def _recreate_links(links: Iterable[tuple[Path, Path]], out: Path) -> None:
    """Recreate symbolic links in an output folder, as far as they lead to files or folders inside it.

    Args:
        links: Pairs of a path in the output folder, and the link to recreate there.
        out: The output folder, with all its files.
    """
    made = []
    for target, link in links:
        target.symlink_to(link.readlink())
        made.append(target)
    while stray := [link for link in made if not (link.exists() and _is_inside(link, out))]:
        for link in stray:  # other links may lead through this one
            link.unlink()
            made.remove(link)


def _is_inside(link: Path, folder: Path) -> bool:
    """Return whether a symbolic link leads into a folder."""
    return files.real(link).is_relative_to(files.real(folder))


def find_files(paths: Sequence[Path]) -> list[FoundFile]:
    """List the files and symbolic links that an output folder gets.

    Args:
        paths: Files and folders.

    Returns:
        The files and links, sorted by their relative path in the output folder.

    Raises:
        InputError: A path does not exist, there is no Java or Python file, two files would get the same path
            in the output folder, or a file would get the reserved path `variants.jsonl`.
    """
    found: dict[str, FoundFile] = {}
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        if path.is_file():
            own = [FoundFile(path.name, path, "rewrite" if path.suffix in SUFFIXES else "copy")]
        else:
            prefix = "" if len(paths) == 1 else f"{path.resolve().name}/"
            own = [file._replace(name=prefix + file.name) for file in _files(path)]
        for file in own:
            if file.name in found or file.name == RECORD:
                raise InputError(f"{file.path}: its variant would replace another file, {file.name}")
            found[file.name] = file
    if not any(file.action == "rewrite" for file in found.values()):
        raise InputError(f"{paths[0]}: no file ending in {' or '.join(SUFFIXES)}")
    return sorted(found.values())


def _files(folder: Path) -> Iterator[FoundFile]:
    """Yield the files and symbolic links in a folder and its subfolders.

    Hidden files and the files in hidden folders are only copied, even if they hold source code.
    """
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _NOT_COPIED]
        for name in (*folders, *(name for name in names if name not in _NOT_COPIED)):
            path = Path(place, name)
            inner = path.relative_to(folder)
            is_source = path.suffix in SUFFIXES and not any(part.startswith(".") for part in inner.parts)
            if path.is_symlink():
                yield FoundFile(inner.as_posix(), path, "link")
            elif path.is_file():
                yield FoundFile(inner.as_posix(), path, "rewrite" if is_source else "copy")
