"""Cleans, deduplicates, decontaminates and splits the texts of all sources."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from simllm.checkpoint import replace_folder
from simllm.errors import InputError
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
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
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
    excluded = {_key(text) for file in config.exclude for text in _rated_texts(file)}
    seen: set[bytes] = set()
    for source in config.sources:
        for raw in sources.read(source):
            counts["read"] += 1
            text = clean(raw)
            key = _key(text)
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


def _key(text: str) -> bytes:
    """Identity of a text for comparison: its letters and digits, without punctuation."""
    return hashlib.blake2b(" ".join(re.findall("[a-z0-9]+", text)).encode(), digest_size=12).digest()


def _rated_texts(file: str) -> Iterator[str]:
    """The cleaned references and candidates of a rated file."""
    for raw in sources.objects(Path(file)):
        for name in ("reference", "candidate", "candidate_clean"):
            if raw.get(name):
                yield clean(raw[name])
