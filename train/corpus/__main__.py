"""Build a corpus from code: comments for pretraining, and pairs of texts with the same meaning.

    python -m train.corpus build --installed-python --out corpus
    python -m train.corpus build repositories/ more/*.jsonl.gz --exclude ratings.jsonl --out corpus
    python -m train.corpus build hf:the-stack/ 'hf:csn:java:train#docstring' --out corpus
    python -m train.corpus build /shared/repositories --engine ray --address auto --out /shared/corpus

A SOURCE is one of these:

- a folder of source trees or git repositories (also bare ones);
- a file of JSON lines with `text`, `summary` or the fields of the data set CodeSearchNet;
- a text file with one comment on each line;
- a corpus that this command has built;
- `hf:NAME[:CONFIG][:SPLIT][#COLUMN]`, a data set that Hugging Face `datasets` can read. NAME is a folder of
  parquet, arrow, csv or JSON files or, with --allow-download, a data set of the Hugging Face hub. The texts
  are in COLUMN. Without COLUMN, the data set must have source code in the column `content`, as in the data
  set The Stack, or the same fields as a file of JSON lines (see above).

With `--engine ray`, the corpus is built on a Ray cluster. All nodes must see the same files. The corpus is
the same as on one machine. Rerun the same command to resume after an interruption. Exit status: 0 done,
2 bad input, 130 interrupted from the keyboard.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from simllm.errors import InputError
from simllm.io.tables import printable
from train.corpus import build, ray_engine
from train.corpus.config import PAGE, CorpusConfig
from train.corpus.engine import Engine, OneMachine
from train.corpus.sources import INSTALLED_PYTHON
from train.runtime.command import make_parser, run_command
from train.runtime.signals import STOPPED_BY_KEYBOARD, Stopped


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.corpus", __doc__)
    building = parser.add_subparsers(required=True, metavar="build").add_parser(
        "build", help="build a corpus"
    )
    building.add_argument("sources", nargs="*", metavar="SOURCE", help="path, glob pattern or hf:NAME")
    building.add_argument("--installed-python", action="store_true", help="read this machine's Python, too")
    building.add_argument("--out", type=Path, required=True, help="folder of the corpus")
    building.add_argument(
        "--exclude", nargs="+", default=[], metavar="RATINGS", help="rated files whose texts are left out"
    )
    building.add_argument("--test-share", type=float, default=0.1, help="share of held-out texts (0.1)")
    building.add_argument("--tags", type=int, default=0, help="number of tagged revisions to read, too (0)")
    building.add_argument(
        "--allow-download", action="store_true", help="let hf:NAME download a data set of the hub"
    )
    building.add_argument("--workers", type=int, help="processes (one for each core)")
    building.add_argument(
        "--engine", choices=("local", "ray"), default="local", help="where to build (local)"
    )
    building.add_argument("--address", help="Ray cluster, such as auto or HOST:PORT (Ray on this machine)")
    return run_command(parser, _build)


def _build(
    sources: list[str],
    installed_python: bool,
    out: Path,
    exclude: list[str],
    test_share: float,
    tags: int,
    allow_download: bool,
    workers: int | None,
    engine: str,
    address: str | None,
) -> None:
    """Build a corpus, and print what it contains and what was left out."""
    installed = [INSTALLED_PYTHON] if installed_python else []
    try:
        config = CorpusConfig((*sources, *installed), tuple(exclude), test_share, tags)
        with _engine(engine, workers, address) as opened:
            built = build.build(config, out, opened, allow_download)
    except OSError as error:
        raise InputError(str(error)) from None
    except KeyboardInterrupt:
        raise Stopped("interrupted; rerun the same command to resume", STOPPED_BY_KEYBOARD) from None
    for title, key in (("texts", "counts"), ("comments left out", "comments_left_out"), ("files", "files")):
        if counts := [f"{count:,} {kind}" for kind, count in built[key].items() if count]:
            print(f"{title}: {', '.join(counts)}")
    print(f"the corpus is in {printable(out)}; its report is {printable(out / PAGE)}")


def _engine(name: str, workers: int | None, address: str | None) -> AbstractContextManager[Engine]:
    """Return a context manager that gives the engine; `address` None starts Ray on this machine."""
    if name == "ray":
        if workers is not None:
            raise InputError("--workers goes with --engine local; Ray uses all processors of the cluster")
        return ray_engine.cluster(address)
    if address is not None:
        raise InputError("--address goes with --engine ray")
    return nullcontext(OneMachine(workers or 0))


if __name__ == "__main__":
    sys.exit(main())
