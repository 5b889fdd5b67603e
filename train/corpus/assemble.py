"""Writes the files of a corpus from its parts. Only hashes of the texts are held in memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from train.corpus.comment_pairs import Pairs
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.deduplicate import SIGNATURE, Near, originals, signature
from train.corpus.finished import COMMENTS, PAIRS, TEST, TRAIN
from train.corpus.part_file import KEYS, OVERRIDES, TEXT, Part, Row
from train.corpus.report import Report
from train.corpus.split import choose_held_out
from train.corpus.tally import Tallies
from train.runtime.config import CorpusConfig


def write(
    config: CorpusConfig, made: list[Part], found: Tallies, excluded: ExcludedTexts, folder: Path
) -> dict[str, Any]:
    """Deduplicate, split and pair the texts of the parts; return the corpus's facts.

    Raises InputError if too few texts are left, or a part is damaged.
    """
    for part in made:
        found.merge(part.facts()["found"])
    texts = _table(made, "texts", TEXT)
    file = folder / "signatures"
    signatures = _on_disk(made, file, len(texts))
    original = originals(texts["identity"], signatures)
    new = original == np.arange(len(texts))
    held = choose_held_out(texts["comment"], texts["repository"], new, config.test_share)
    leaks = Near(signatures[new & held])
    leaky = held | leaks(signatures)
    del signatures
    file.unlink(missing_ok=True)
    equal = texts["identity"] == texts["identity"][original]
    counts = found.texts.counts
    counts["duplicate"], counts["near duplicate"] = int((equal & ~new).sum()), int((~equal).sum())
    counts["train"], counts["test"] = int((new & ~held).sum()), int((new & held).sum())
    if not counts["train"] or not counts["test"]:
        problem = "; ".join([*found.problems(), f"too few texts ({dict(counts)})"])
        raise InputError(f"corpus {', '.join(config.sources)}: {problem}")
    report = Report(np.flatnonzero(~equal), original)
    del texts, equal
    _write_texts(made, new, held, folder, report)
    _write_pairs(made, new, leaky, leaks, folder, report)
    report.write(folder, found)
    return {
        "sha256": _sha256(folder / TRAIN, folder / TEST),
        "excluded_sha256": excluded.digest,
        "counts": dict(counts),
        "comments_left_out": dict(found.comments.counts),
        "files": dict(found.files.counts),
    }


def _write_texts(
    made: list[Part], new: NDArray[np.bool_], held: NDArray[np.bool_], folder: Path, report: Report
) -> None:
    """Write the new texts, and the comments that they are from."""
    at = 0  # index of the next text
    with (
        _opened(folder / TRAIN) as train,
        _opened(folder / TEST) as test,
        _opened(folder / COMMENTS) as comments,
    ):
        for source, row in _rows(made):
            report.near(at, row.texts)
            kept = [text for k, text in enumerate(row.texts, at) if new[k]]
            if kept:
                (test if held[at] else train).writelines(text + "\n" for text in kept)
                comment = {key: value for key, value in row.comment.items() if value}
                _line(comments, comment | {"split": "test" if held[at] else "train"})
                report.add(source, row, kept)
            at += len(row.texts)


def _write_pairs(
    made: list[Part],
    new: NDArray[np.bool_],
    leaky: NDArray[np.bool_],
    leaks: Near,
    folder: Path,
    report: Report,
) -> None:
    """Write the pairs of texts; a text that is `leaky`, held out or near to one that is, is in no pair."""
    pairs = Pairs(_table(made, "keys", KEYS), _overrides(made))
    at = 0  # index of the next text
    with _opened(folder / PAIRS) as file:
        for number, (_, row) in enumerate(_rows(made)):
            safe = ["" if leaky[k] else text for k, text in enumerate(row.texts, at)]
            summary = safe[0] if row.summary else ""
            own = [(summary, _joined(safe[1:], leaks), "description")] if summary and new[at] else []
            for a, b, kind in (*own, *pairs.meet(number, summary)):
                if a and b:
                    _line(file, {"a": a, "b": b, "kind": kind})
                    report.pair(a, b, kind)
            at += len(row.texts)


def _joined(paragraphs: list[str], leaks: Near) -> str:
    """Return the paragraphs as one text; "" if the whole is near to a text that is held out."""
    kept = [text for text in paragraphs if text]
    whole = " ".join(kept)
    return "" if len(kept) > 1 and leaks(signature(whole)[None])[0] else whole


def _opened(file: Path) -> IO[str]:
    return file.open("w", encoding="utf-8", newline="\n")


def _rows(made: list[Part]) -> Iterator[tuple[str, Row]]:
    """All comments that have a text left, with their sources."""
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
    """The names that comments may override, with the comments' rows in the whole corpus."""
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
