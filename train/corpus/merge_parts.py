"""The last step of building a corpus: merging its parts into the final files.

A part is the file with the comments from one batch of source files. A comment has one or several texts: its
summary (first sentence) and its other paragraphs. Repeated texts are found by
comparing hashes of the texts. Therefore, the texts need not be in memory all at once.
"""

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
from train.corpus.comment_pairs import PairFinder
from train.corpus.config import CorpusConfig
from train.corpus.corpus_folder import COMMENTS, PAIRS, TEST, TRAIN
from train.corpus.corpus_report import Report
from train.corpus.corpus_split import choose_held_out
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.deduplicate import NearDuplicates, signature
from train.corpus.engine import Engine
from train.corpus.part_file import KEYS, OVERRIDES, TEXT, CommentTexts, Part
from train.corpus.skip_counts import Tallies


def write_corpus(
    config: CorpusConfig,
    parts: list[Part],
    tallies: Tallies,
    excluded: ExcludedTexts,
    folder: Path,
    engine: Engine,
) -> dict[str, Any]:
    """Merge the parts of a corpus, and write the files of the corpus.

    Repeated texts are removed. The remaining texts are split into training and test texts. Then pairs of
    texts that mean the same are collected.

    Args:
        config: The configuration of the corpus.
        parts: The parts of the corpus. A part is a file with the comments from one batch of source files.
        tallies: Counters of files, comments and texts; the counts from all parts are added to them.
        excluded: The evaluation texts that were left out of the parts.
        folder: An existing folder, in which the files are written.
        engine: The object that compares the texts, on this machine or on a cluster.

    Returns:
        Checksums and counts for `corpus.json`, as JSON values.

    Raises:
        InputError: No training or no test text is left, or a part is damaged.
    """
    for part in parts:
        tallies.merge(part.facts()["found"])
    tables = [part["texts"] for part in parts]
    texts = np.concatenate([*tables, np.empty(0, TEXT)])
    with engine.signatures(parts, [len(table) for table in tables], folder) as signatures:
        del tables
        original = signatures.find_originals(texts["identity"])
        new = original == np.arange(len(texts))
        held_out = choose_held_out(texts["comment"], texts["repository"], new, config.test_share)
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
    """Write `train.txt`, `test.txt` and `comments.jsonl`, without repeated texts.

    Args:
        parts: The parts of the corpus, with T texts in total.
        new: (T,) for each text, true if it repeats no earlier text.
        held_out: (T,) for each text, true if it belongs in `test.txt`.
        folder: The folder of the corpus.
        report: The report, which collects counts and examples of the written comments.
    """
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
    """Write `pairs.jsonl`: pairs of texts that mean the same.

    The summary of a comment is its first sentence. The description is the rest, joined to one text. A pair
    is one of these:

    - The summary and the description of one comment.
    - The summaries of two comments. The comments are on two versions of a function, or on a method and the
      method that it overrides (see `PairFinder`).

    Held-out (test) texts and their near duplicates are left out.

    Args:
        parts: The parts of the corpus, with T texts in total.
        new: (T,) for each text, true if it repeats no earlier text. A summary that repeats an earlier text is
            not paired with its description.
        leaky: (T,) for each text, true if it is held out or a near duplicate of a held-out text.
        near_held_out: An object that finds near duplicates of held-out texts. It checks the descriptions that
            are joined from several paragraphs. (`leaky` tells only about single texts.)
        folder: The folder of the corpus.
        report: The report, which collects counts and examples of the pairs.
    """
    pairs = PairFinder(_concatenate_tables(parts, "keys", KEYS), _overrides(parts))
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
    """Join paragraphs into one text, and reject the text if it nearly repeats a held-out (test) text.

    Args:
        paragraphs: The paragraphs; empty ones are ignored. The caller has already checked that no single
            paragraph nearly repeats a held-out text.
        near_held_out: An object that finds near duplicates of held-out texts.

    Returns:
        The joined text; "" if it is rejected.
    """
    kept = [text for text in paragraphs if text]
    whole = " ".join(kept)
    return "" if len(kept) > 1 and near_held_out(signature(whole)[None])[0] else whole


def _open_text(file: Path) -> IO[str]:
    return file.open("w", encoding="utf-8", newline="\n")


def _rows(parts: list[Part]) -> Iterator[tuple[str, CommentTexts]]:
    """Read all comments from the parts of a corpus, with the names of their sources.

    A part is a file with the comments from one batch of source files.

    Yields:
        The name of the source from which the comment was read (such as a folder or a data set), and the
        comment with its cleaned texts.
    """
    for part in parts:
        source = part.facts()["source"]
        for row in part.rows():
            yield source, row


def _write_line(file: IO[str], row: dict[str, str]) -> None:
    file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _concatenate_tables(parts: list[Part], name: str, kind: np.dtype[np.void]) -> NDArray[np.void]:
    return np.concatenate([part[name] for part in parts] or [np.empty(0, kind)])


def _overrides(parts: list[Part]) -> NDArray[np.void]:
    """Join the arrays `overrides` of all parts into one array.

    A part is a file with the comments from one batch of source files. In `overrides`, a commented method has
    one entry for each direct supertype of its class. The entry has the number of the comment (`row`), and a
    hash of the repository, the supertype and the method's name (`name`). If the supertype has a method of
    this name, the commented method overrides it.

    In each part, the comments are numbered from 0. In the joined array, the numbering continues from part to
    part: if the first part has 10 comments, the first comment of the second part gets the number 10.
    """
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
