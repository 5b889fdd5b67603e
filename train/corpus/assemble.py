"""Parts -> the files of a corpus. Of the texts, only hashes are held in memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from train.corpus import decontaminate
from train.corpus.comment_pairs import Pairs
from train.corpus.deduplicate import SIGNATURE, originals
from train.corpus.part_file import KEYS, OVERRIDES, TEXT, Part, Row
from train.corpus.report import Report
from train.corpus.sources import COMMENTS
from train.corpus.split import held_out
from train.corpus.tally import Tallies
from train.runtime.config import CorpusConfig

TRAIN, TEST, PAIRS = "train.txt", "test.txt", "pairs.jsonl"


def write(config: CorpusConfig, made: list[Part], found: Tallies, folder: Path) -> dict[str, Any]:
    """Deduplicate, split and pair what is in the parts; returns the corpus's facts."""
    for part in made:
        found.merge(part.facts()["found"])
    texts = _table(made, "texts", TEXT)
    signatures = folder / "signatures"
    original = originals(texts["identity"], _on_disk(made, signatures, len(texts)))
    signatures.unlink(missing_ok=True)
    new = original == np.arange(len(texts))
    held = held_out(texts["comment"], texts["repository"], new, config.test_share)
    equal = texts["identity"] == texts["identity"][original]
    counts = found.texts.counts
    counts["duplicate"], counts["near duplicate"] = int((equal & ~new).sum()), int((~equal).sum())
    counts["train"], counts["test"] = int((new & ~held).sum()), int((new & held).sum())
    if not counts["train"] or not counts["test"]:
        problem = "; ".join([*found.problems(), f"too few texts ({dict(counts)})"])
        raise InputError(f"corpus {', '.join(config.sources)}: {problem}")
    report = Report(np.flatnonzero(~equal), original)
    del texts, equal
    _stream(made, new, held, held | held[original], folder, report)
    report.write(folder, found)
    return {
        "sha256": _sha256(folder / TRAIN, folder / TEST),
        "excluded_sha256": decontaminate.read(config.exclude).digest,
        "counts": dict(counts),
        "comments_left_out": dict(found.comments.counts),
        "files": dict(found.files.counts),
    }


def _stream(
    made: list[Part],
    new: NDArray[np.bool_],
    held: NDArray[np.bool_],
    leaky: NDArray[np.bool_],
    folder: Path,
    report: Report,
) -> None:
    """Write the texts that are new, their comments, and the pairs of which no text is `leaky`."""
    pairs = Pairs(_table(made, "keys", KEYS), _overrides(made))
    at = 0  # index of the next text
    with (
        (folder / TRAIN).open("w") as train,
        (folder / TEST).open("w") as test,
        (folder / COMMENTS).open("w") as comments,
        (folder / PAIRS).open("w") as paired,
    ):
        for number, (source, row) in enumerate(_rows(made)):
            report.near(at, row.texts)
            kept = [text for k, text in enumerate(row.texts, at) if new[k]]
            if kept:
                (test if held[at] else train).writelines(text + "\n" for text in kept)
                comment = {key: value for key, value in row.comment.items() if value}
                _line(comments, comment | {"split": "test" if held[at] else "train"})
                report.add(source, row, kept)
            own = [(row.summary, " ".join(row.rest), "description")] if new[at] and not leaky[at] else []
            for a, b, kind in (*own, *pairs.meet(number, "" if leaky[at] else row.summary)):
                if a and b:
                    _line(paired, {"a": a, "b": b, "kind": kind})
                    report.pair(a, b, kind)
            at += len(row.texts)


def _rows(made: list[Part]) -> Iterator[tuple[str, Row]]:
    """All comments of which a text is left, with their sources."""
    for part in made:
        source = part.facts()["source"]
        for row in part.rows():
            yield source, row


def _line(file: IO[str], row: dict[str, str]) -> None:
    file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _table(made: list[Part], name: str, kind: np.dtype[np.void]) -> NDArray[np.void]:
    """A table of all parts, as one."""
    return np.concatenate([part[name] for part in made] or [np.empty(0, kind)])


def _overrides(made: list[Part]) -> NDArray[np.void]:
    """What may be overridden, by the row in the whole corpus."""
    tables, rows = [np.empty(0, OVERRIDES)], 0
    for part in made:
        tables.append(part["overrides"])
        tables[-1]["row"] += np.uint64(rows)
        rows += len(part["keys"])
    return np.concatenate(tables)


def _on_disk(made: list[Part], file: Path, count: int) -> NDArray[np.uint8]:
    """(count, SIGNATURE) signatures of all texts, in a file: most of them are looked at seldom."""
    if not count:
        return np.empty((0, SIGNATURE), np.uint8)
    with file.open("wb") as target:
        for part in made:
            target.write(part["signatures"].tobytes())
    return np.memmap(file, np.uint8, "r", shape=(count, SIGNATURE))


def _sha256(*files: Path) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as data:
            while chunk := data.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()
