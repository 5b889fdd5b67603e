"""The merging of parts into a corpus: no duplicates, a split into training and test texts, and pairs."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from train.corpus.config import COMMENTS, PAIRS, TEST, TRAIN, CorpusConfig
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.deduplicate import NearDuplicates, signature
from train.corpus.engine import Engine
from train.corpus.parts import KEYS, OVERRIDES, TEXT, CommentTexts, Part, Tallies
from train.corpus.report import Report


def choose_held_out(
    comments: NDArray[np.uint64], repositories: NDArray[np.uint64], new: NDArray[np.bool_], share: float
) -> NDArray[np.bool_]:
    """Choose the held-out texts by hashes, so that the choice is reproducible: (N,) bool.

    Whole repositories are held out, in the order of their hashes, up to `share` of the texts from known
    repositories. Other texts are held out by the hash of their comment.

    Args:
        comments: (N,) hash of each text's comment.
        repositories: (N,) hash of each text's repository; 0 if unknown.
        new: (N,) whether the text repeats no earlier text; only such texts are counted.
        share: The share of texts to hold out, between 0 and 1.
    """
    # All texts of a comment have the same hash here, and stay together.
    by_comment = comments < np.uint64(share * 2**64)
    has_repository = repositories != 0
    names, count = np.unique(repositories[has_repository & new], return_counts=True)
    quota, taken = share * count.sum(), 0
    chosen = np.zeros(len(names), bool)
    for number in range(len(names)):
        # A repository that would exceed the limit is skipped; a smaller one may still fit.
        if taken + count[number] <= quota:
            chosen[number] = True
            taken += count[number]
    # The repositories are too large to hold out: then none of them is kept together.
    if taken < quota / 2:
        return by_comment
    return np.where(has_repository, np.isin(repositories, names[chosen]), by_comment)


class PairFinder:
    """Finder of pairs of comments that mean the same, by hashes and without the texts.

    Pairs with equal summaries are left out. `keys` is an (R,) array of type `KEYS` with three
    hashes of each comment (0 if unknown); `overrides` is an array of type `OVERRIDES`.
    """

    def __init__(self, keys: NDArray[np.void], overrides: NDArray[np.void]) -> None:
        pairs = [_version_pairs(keys), _override_pairs(keys, overrides)]
        rows, kind = np.concatenate(pairs), np.repeat([0, 1], [len(some) for some in pairs])
        differ = keys["summary"][rows[:, 0]] != keys["summary"][rows[:, 1]]
        rows, kind = rows[differ], kind[differ]
        # By the later comment of each pair, which completes the pair.
        order = np.argsort(rows.max(1, initial=0), kind="stable")
        self._rows, self._kind = rows[order], kind[order]
        # A summary is stored only until its last pair is complete, to save memory.
        self._uses = np.bincount(rows.ravel(), minlength=len(keys))
        self._held: dict[int, str] = {}
        self._next = 0

    def complete_pairs(self, row: int, text: str) -> Iterator[tuple[str, str, str]]:
        """Take the summary of comment `row`, and yield the pairs that it completes, with "version" or
        "override".

        Must be called for each comment, in order.
        """
        if self._uses[row]:
            self._held[row] = text
        while self._next < len(self._rows) and self._rows[self._next].max() == row:
            first, second = map(int, self._rows[self._next])
            yield self._held[first], self._held[second], ("version", "override")[self._kind[self._next]]
            for used in (first, second):
                self._uses[used] -= 1
                if not self._uses[used]:
                    del self._held[used]
            self._next += 1


def _version_pairs(keys: NDArray[np.void]) -> NDArray[np.int64]:
    """Pair each comment with the next one on the same repository, path and name: (P, 2) rows of `keys`."""
    rows = np.flatnonzero((keys["function"] != 0) & (keys["summary"] != 0))
    rows = rows[np.argsort(keys["function"][rows], kind="stable")]
    same = keys["function"][rows[1:]] == keys["function"][rows[:-1]]
    return np.stack([rows[:-1][same], rows[1:][same]], 1)


def _override_pairs(keys: NDArray[np.void], overrides: NDArray[np.void]) -> NDArray[np.int64]:
    """Pair each overriding method with the overridden one: (P, 2) rows of `keys`."""
    has_name = np.flatnonzero((keys["summary"] != 0) & (keys["name"] != 0))
    # If there are several comments on the overridden method, the first is used.
    names, first = np.unique(keys["name"][has_name], return_index=True)
    rows = overrides["row"].astype(np.int64)
    exists = (keys["summary"][rows] != 0) & np.isin(overrides["name"], names)
    overridden = has_name[first[np.searchsorted(names, overrides["name"][exists])]]
    return np.stack([rows[exists], overridden], 1)


def write_corpus(
    config: CorpusConfig,
    parts: list[Part],
    tallies: Tallies,
    excluded: ExcludedTexts,
    folder: Path,
    engine: Engine,
) -> dict[str, Any]:
    """Merge the parts, write the files into `folder`, and return checksums and counts for `corpus.json`.

    Repeated texts are removed, the others are split into training and test texts, and pairs are collected.
    Raises InputError if there is no training or no test text.
    """
    for part in parts:
        tallies.merge(part.facts()["found"])
    tables = [part["texts"] for part in parts]
    texts = np.concatenate([*tables, np.empty(0, TEXT)])
    with engine.signatures(parts, [len(table) for table in tables], folder) as signatures:
        # Memory: from here on, one copy of the hashes is enough.
        del tables
        original = signatures.find_originals(texts["identity"])
        new = original == np.arange(len(texts))
        held_out = choose_held_out(texts["comment"], texts["repository"], new, config.test_share)
        # Only texts that stay in the corpus can leak.
        near_held_out = NearDuplicates(signatures.select(new & held_out))
        leaky = held_out | signatures.near(near_held_out)
    equal = texts["identity"] == texts["identity"][original]
    counts = tallies.texts.counts
    counts["duplicate"], counts["near duplicate"] = int((equal & ~new).sum()), int((~equal).sum())
    counts["train"], counts["test"] = int((new & ~held_out).sum()), int((new & held_out).sum())
    if not counts["train"] or not counts["test"]:
        shown = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
        # With so many texts, the smaller part gets none in 5% of the cases.
        smaller = max(min(config.test_share, 1 - config.test_share), 1e-9)
        enough = math.ceil(math.log(0.05) / math.log(1 - smaller))
        few = (
            f"too few texts ({shown}); training and test need at least one each, for which about "
            f"{enough:,} different texts are enough at a test share of {config.test_share:g}"
        )
        problem = "; ".join([*tallies.problems(), few])
        raise InputError(f"corpus {', '.join(config.sources)}: {problem}")
    report = Report(np.flatnonzero(~equal), original)
    del texts, equal, signatures
    _write_texts(parts, new, held_out, folder, report)
    _write_pairs(parts, new, leaky, near_held_out, folder, report)
    report.write(folder, tallies)
    return {
        "sha256": _sha256(folder / TRAIN, folder / TEST),
        "excluded_sha256": excluded.digest,
        "counts": dict(counts),
        "comments_left_out": dict(tallies.comments.counts),
        "files": dict(tallies.files.counts),
    }


def _write_texts(
    parts: list[Part], new: NDArray[np.bool_], held_out: NDArray[np.bool_], folder: Path, report: Report
) -> None:
    """Write `train.txt`, `test.txt` and `comments.jsonl`; `new` and `held_out` are (T,) for all texts."""
    at = 0  # index of the next text
    with (
        _open_text(folder / TRAIN) as train,
        _open_text(folder / TEST) as test,
        _open_text(folder / COMMENTS) as comments,
    ):
        for source, row in _rows(parts):
            report.note_texts(at, row.texts)
            kept = [text for k, text in enumerate(row.texts, at) if new[k]]
            if kept:
                # All texts of a comment are in the same split.
                (test if held_out[at] else train).writelines(text + "\n" for text in kept)
                comment = {key: value for key, value in row.comment.items() if value}
                _write_line(comments, comment | {"split": "test" if held_out[at] else "train"})
                report.add_comment(source, row, kept)
            at += len(row.texts)


def _write_pairs(
    parts: list[Part],
    new: NDArray[np.bool_],
    leaky: NDArray[np.bool_],
    near_held_out: NearDuplicates,
    folder: Path,
    report: Report,
) -> None:
    """Write `pairs.jsonl`: summary and description of a comment, or two comments (see `PairFinder`).

    `new` and `leaky` are (T,) for all texts; no leaky text is written.
    """
    keys = np.concatenate([np.empty(0, KEYS), *(part["keys"] for part in parts)])
    pairs = PairFinder(keys, _overrides(parts))
    at = 0  # index of the next text
    with _open_text(folder / PAIRS) as file:
        for number, (_, row) in enumerate(_rows(parts)):
            safe = ["" if leaky[k] else text for k, text in enumerate(row.texts, at)]
            summary = safe[0] if row.summary else ""
            description = _join_safely(safe[1:], near_held_out)
            own = [(summary, description, "description")] if summary and new[at] else []
            for a, b, kind in (*own, *pairs.complete_pairs(number, summary)):
                if a and b:
                    _write_line(file, {"a": a, "b": b, "kind": kind})
                    report.add_pair(a, b, kind)
            at += len(row.texts)


def _join_safely(paragraphs: list[str], near_held_out: NearDuplicates) -> str:
    """Join the non-empty paragraphs; "" if the whole nearly repeats a held-out text."""
    kept = [text for text in paragraphs if text]
    whole = " ".join(kept)
    # A single paragraph was checked by the caller; several may nearly repeat a text only when joined.
    return "" if len(kept) > 1 and near_held_out(signature(whole)[None])[0] else whole


def _open_text(file: Path) -> IO[str]:
    return file.open("w", encoding="utf-8", newline="\n")


def _rows(parts: list[Part]) -> Iterator[tuple[str, CommentTexts]]:
    """Yield all comments with the names of their sources."""
    for part in parts:
        source = part.facts()["source"]
        for row in part.rows():
            yield source, row


def _write_line(file: IO[str], row: dict[str, str]) -> None:
    file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _overrides(parts: list[Part]) -> NDArray[np.void]:
    """Join the tables `overrides` of all parts, and number the comments through all parts."""
    tables, rows = [np.empty(0, OVERRIDES)], 0
    for part in parts:
        tables.append(part["overrides"])
        tables[-1]["row"] += np.uint64(rows)
        rows += len(part["keys"])
    return np.concatenate(tables)


def _sha256(*files: Path) -> str:
    """Return one SHA-256 for the joined contents of several files, in hex digits."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as data:
            while chunk := data.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()
