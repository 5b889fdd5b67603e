"""Make the default model anew: from source trees and corpora to its card.

    python -m train.reproduce --trees ../trees --out runs/default

Clones the repositories of configs/repositories.tsv into `--trees`, each at its revision (those
that are there are taken as they are), and runs one command after the other; each is printed.
Killed at any moment, the same command goes on. Takes hours on two cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from simllm.errors import InputError
from simllm.io import files, folders

_HOST = "https://github.com"
_DATA = Path("../shared/data")  # as the configs name it
# The twin that shows what is made of words that no list holds: a shorter run.
_HELD_OUT = ["hold_out_contrast=true", "positives.3.source=runs/wordnet-held-out.jsonl", "updates=1000"]
_RATED = ("haque2022", "shen2021_leclair")


def main() -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.reproduce",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--trees", type=Path, required=True, help="folder of the cloned repositories")
    parser.add_argument("--out", type=Path, default=Path("checkpoints/default"), help="default: %(default)s")
    parser.add_argument(
        "--wordnet", type=Path, default=Path("/usr/share/wordnet"), help="default: %(default)s"
    )
    parser.add_argument(
        "--seeds", type=int, default=3, help="runs of the second stage (default: %(default)s)"
    )
    options = parser.parse_args()
    try:
        for folder in (_DATA, options.wordnet):
            if not folder.is_dir():
                raise InputError(f"{folder}: no such folder")
        trees = [tree(options.trees, *entry) for entry in repositories(Path("configs/repositories.tsv"))]
        for command in commands(options, trees):
            print("$ python -m " + " ".join(command), file=sys.stderr)
            if status := subprocess.run([sys.executable, "-m", *command], check=False).returncode:
                return status
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def repositories(file: Path) -> list[tuple[str, str]]:
    """Owner/name and revision of each."""
    rows = [(number, line.split("\t")) for number, line in files.lines(file) if not line.startswith("#")]
    for number, row in rows:
        if len(row) != 2:
            raise InputError(f"{file}, line {number}: expected owner/name and a revision, with a tab between")
    return [(name, revision) for _, (name, revision) in rows]


def tree(folder: Path, name: str, revision: str) -> Path:
    """The bare repository, cloned where it is not there yet; its HEAD is the revision.

    What is held out depends on the last two folders of its path.
    """
    path = folder / name.replace("/", "+") / "repo"
    if not path.is_dir():
        with folders.replacing(path) as partial:
            clone = ["git", "clone", "--bare", "--quiet", f"{_HOST}/{name}", str(partial)]
            head = ["git", "-C", str(partial), "update-ref", "--no-deref", "HEAD", revision]
            for command in (clone, head):
                if subprocess.run(command, check=False).returncode:
                    raise InputError(f"{name}: cannot be cloned at {revision} from {_HOST}")
    return path


def commands(options: argparse.Namespace, trees: list[Path]) -> list[list[str]]:
    """Every step, as one would type it."""
    rated = [str(_DATA / "rated" / f"{name}.jsonl") for name in _RATED]
    steps = []
    if not Path("runs/repositories/corpus.json").is_file():
        built = ["train.corpus", "build", *map(os.fspath, trees), "--out", "runs/repositories"]
        steps.append([*built, "--exclude", *rated])
    steps.append(["train.pretrain", "configs/mini.yaml"])
    words = ["train.contrastive.wordnet_pairs", str(options.wordnet), "runs/mini/corpus/train.txt"]
    steps += [[*words, "runs/wordnet.jsonl"], [*words, "runs/wordnet-held-out.jsonl", "--hold-out-contrast"]]
    second = ["train.contrastive", "configs/contrastive.yaml"]
    runs = ["runs/contrastive", *(f"runs/contrastive-{seed}" for seed in range(2, options.seeds + 1))]
    steps += [[*second, f"seed={seed}", f"out={run}"] for seed, run in enumerate(runs, 1)]
    twin = "runs/contrastive-held-out"
    steps.append([*second, f"out={twin}", *_HELD_OUT])
    release = ["train.release", "runs/mini", runs[0], "--start-share", "0.15"]
    release += ["--out", str(options.out), "--held-out", twin]
    release += ["--notes", "checkpoints/notes.md", "--centre", "runs/mini/corpus/test.txt"]
    release += ["--seeds", *runs[1:]]
    ablations = Path("checkpoints/ablations.json")
    if ablations.is_file():
        release += ["--ablations", str(ablations)]
    calibrate = ["train.release.calibrate", str(options.out), "--comments", "runs/mini/corpus/test.txt"]
    return [*steps, release, [*calibrate, "--ratings", rated[1]], ["train.release.golden", str(options.out)]]


if __name__ == "__main__":
    sys.exit(main())
