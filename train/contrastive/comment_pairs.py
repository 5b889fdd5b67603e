"""Pair comments of a corpus that differ in meaning, as negatives for the meaning head, with teacher cosines.

    python -m train.contrastive.comment_pairs runs/repositories/comments.jsonl runs/comment-pairs.jsonl \
        --teachers ../teachers/all-mpnet-base-v2 ../teachers/all-MiniLM-L6-v2

The output is JSON lines with the texts `a` and `b`, the mean of the teachers' cosines in `cosine`, and a
`label`, which says how the pair was chosen:

- `random`: any two comments.
- `file`: two comments of one source file, often of one class.
- `near`: a comment and one of the twenty that the teachers find most similar. They are about similar things.

Comments can have the same meaning by chance, as "gets the name" and "returns the name of this" do. The label
of a pair is `alike` if the mean cosine is .6 or more, or if the content words are the same: then the pair is
no negative.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from simllm.errors import InputError
from simllm.io import output_file, reading
from simllm.perturb.summaries import lexicon
from simllm.text_cleaning import clean
from train.contrastive.near_duplicate_pairs import extract_content_words
from train.distill import teachers as teacher_models
from train.runtime.command import make_parser, run_command

_SEED = 1
_NEAREST = 20  # texts to choose from
_ALIKE = 0.6  # lowest mean cosine of texts that may have the same meaning
_CHUNK = 256  # texts that are compared with all other texts at once; bounds the memory
_LONGEST = 40  # words of a text


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.contrastive.comment_pairs", __doc__)
    parser.add_argument("comments", type=Path, help="the comments.jsonl of a corpus")
    parser.add_argument("out", type=Path, help="JSON lines to write")
    parser.add_argument("--teachers", type=Path, nargs="+", required=True, help="folders of larger encoders")
    parser.add_argument(
        "--texts", type=int, default=16_000, help="largest number of comments (default: %(default)s)"
    )
    return run_command(parser, _write, overwrite=True)


def _write(comments: Path, out: Path, teachers: list[Path], texts: int, overwrite: bool) -> None:
    output_file.check_output(out, overwrite, [comments])
    files = read_files(comments, texts)
    chosen = [text for file in files for text in file]
    if len(chosen) < 2:
        raise InputError(f"{comments}: expected two or more different texts")
    device = torch.device("cpu")
    parts = [teacher_models.load(folder, device)(chosen) for folder in teachers]
    # The cosine of two concatenated embeddings is the mean of the teachers' cosines.
    embeddings = np.concatenate(parts, axis=1) / len(parts) ** 0.5
    rows = list(pair(files, embeddings))
    output_file.write(out, "".join(json.dumps(row) + "\n" for row in rows))
    print(f"{len(rows):,} pairs in {out}", file=sys.stderr)


def read_files(comments: Path, limit: int) -> list[list[str]]:
    """Read different cleaned texts, in one list for each source file, in random order.

    Comments that are held out from training are left out. A text without a `path` has a list of its own.
    After `limit` texts, no more lists are taken.
    """
    files: dict[tuple[str, str], list[str]] = {}
    seen: set[str] = set()
    for where, row in reading.objects(comments):
        text = clean(reading.text_under(row, "summary", where))
        if row.get("split") != "test" and 0 < len(text.split()) <= _LONGEST and text not in seen:
            seen.add(text)
            file = str(row.get("repository")), str(row.get("path", where))
            files.setdefault(file, []).append(text)
    in_order = list(files.values())
    chosen: list[list[str]] = []
    for number in np.random.default_rng(_SEED).permutation(len(in_order)):
        if sum(map(len, chosen)) >= limit:
            break
        chosen.append(in_order[number])
    return chosen


def pair(files: Sequence[Sequence[str]], embeddings: np.ndarray) -> Iterator[dict[str, str | float]]:
    """Pair each text three times: with a random one, with one of its file, and with a similar one.

    `embeddings` is (n, D), of length 1, for the n texts of all files in order.
    """
    texts = [text for file in files for text in file]
    words, random = lexicon.load(), np.random.default_rng(_SEED)
    content = [extract_content_words(text, words) for text in texts]
    ends = np.cumsum([len(file) for file in files])
    ends_of_file = np.repeat(ends, [len(file) for file in files])
    sizes = np.repeat([len(file) for file in files], [len(file) for file in files])
    numbers = np.arange(len(texts))
    # A shift by 1 to n - 1 never pairs a text with itself.
    others = {"random": (numbers + random.integers(1, len(texts), size=len(texts))) % len(texts)}
    starts = ends_of_file - sizes
    shifts = random.integers(1, np.maximum(sizes, 2))
    # The only text of a file meets itself here, and is left out below.
    others["file"] = starts + (numbers - starts + shifts) % sizes
    others["near"] = _near(embeddings, random)
    for label, second in others.items():
        cosines = (embeddings * embeddings[second]).sum(axis=1).tolist()
        for i, j, cosine in zip(numbers.tolist(), second.tolist(), cosines, strict=True):
            if i != j:
                alike = cosine >= _ALIKE or content[i] == content[j]
                yield {
                    "a": texts[i],
                    "b": texts[j],
                    "label": "alike" if alike else label,
                    "cosine": round(cosine, 4),
                }


def _near(embeddings: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Choose for each of n texts one of the most similar ones at random: (n,) indices."""
    most = min(_NEAREST, len(embeddings) - 1)
    chosen = []
    for start in range(0, len(embeddings), _CHUNK):
        cosines = embeddings[start : start + _CHUNK] @ embeddings.T
        rows = np.arange(len(cosines))
        # A text is not its own neighbour.
        cosines[rows, start + rows] = -2
        nearest = np.argpartition(cosines, len(embeddings) - most, axis=1)[:, -most:]
        chosen.append(nearest[rows, random.integers(most, size=len(rows))])
    return np.concatenate(chosen)


if __name__ == "__main__":
    sys.exit(main())
