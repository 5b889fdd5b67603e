"""Cleans, deduplicates, decontaminates and splits the texts of all sources."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from simllm.errors import InputError
from simllm.files import fresh_folder, objects, replace_folder, text_under
from simllm.text import clean
from train.config import CorpusConfig
from train.corpus import sources

TRAIN, TEST, REPORT = "train.txt", "test.txt", "corpus.json"


def build(config: CorpusConfig, folder: Path) -> dict[str, object]:
    """Write `train.txt`, `test.txt` (a cleaned text a line) and `corpus.json` to `folder`.

    Returns what `corpus.json` holds: the configuration, the SHA-256 of both files and the
    counts of what was read, dropped and kept. A folder that was built from the same
    configuration is left as it is.
    """
    report = folder / REPORT
    asked = json.loads(json.dumps(asdict(config)))
    if report.is_file() and (built := json.loads(report.read_text()))["config"] == asked:
        return dict(built)
    partial = fresh_folder(folder)
    counts: Counter[str] = Counter()
    with (partial / TRAIN).open("w") as train, (partial / TEST).open("w") as test:
        for text, held_out in _kept(config, counts):
            (test if held_out else train).write(text + "\n")
    if not counts["train"] or not counts["test"]:
        raise InputError(f"corpus {', '.join(config.sources)}: too few texts ({dict(counts)})")
    digest = hashlib.sha256((partial / TRAIN).read_bytes() + (partial / TEST).read_bytes())
    built = {"config": asked, "sha256": digest.hexdigest(), "counts": dict(counts)}
    (partial / REPORT).write_text(json.dumps(built, indent=2) + "\n")
    replace_folder(partial, folder)
    return built


def _kept(config: CorpusConfig, counts: Counter[str]) -> Iterator[tuple[str, bool]]:
    """Yield the texts that are kept, and whether each is held out."""
    excluded = rated(config.exclude)
    seen: set[bytes] = set()
    for source in config.sources:
        for raw in sources.read(source):
            counts["read"] += 1
            text = clean(raw)
            key = identity(text)
            if not re.search("[a-z].* .*[a-z]", text):
                counts["fewer than two words"] += 1
            elif key in excluded:
                counts["in a rated set"] += 1
            elif key in seen:
                counts["duplicate"] += 1
            else:
                seen.add(key)
                held_out = int.from_bytes(key[:4], "big") < config.test_share * 2**32
                counts["test" if held_out else "train"] += 1
                yield text, held_out


def identity(text: str) -> bytes:
    """What makes two cleaned texts the same: their letters and digits, without punctuation."""
    return hashlib.blake2b(" ".join(re.findall("[a-z0-9]+", text)).encode(), digest_size=12).digest()


def rated(patterns: Iterable[str]) -> set[bytes]:
    """The identities of all references and candidates in rated files."""
    found = set()
    for pattern in patterns:
        for file in sources.matching(pattern):
            for where, row in objects(file):
                found |= {
                    identity(clean(text_under(row, name, where))) for name in ("reference", "candidate")
                }
                if "candidate_clean" in row:
                    found.add(identity(clean(text_under(row, "candidate_clean", where))))
    return found - {identity("")}
