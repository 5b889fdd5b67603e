"""Build a corpus out of code: comments to pretrain on, and pairs of texts that mean the same.

    python -m train.corpus build --installed-python --out corpus
    python -m train.corpus build repositories/ more/*.jsonl.gz --exclude ratings.jsonl --out corpus

A SOURCE is a folder of source trees or git repositories (bare ones, too), lines of JSON with
`text`, `summary` or CodeSearchNet's fields, plain lines, or a corpus. If the command is killed, run
it again to resume. Exit status: 0 done, 2 bad input, 130 interrupted from the keyboard.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from simllm.errors import InputError
from simllm.io.files import printable
from train.corpus import build
from train.corpus.finished import PAGE
from train.corpus.sources import INSTALLED_PYTHON
from train.runtime.config import CorpusConfig


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.corpus",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command = parser.add_subparsers(required=True, metavar="build").add_parser("build", help="build a corpus")
    command.add_argument("sources", nargs="*", metavar="SOURCE", help="path or glob pattern")
    command.add_argument("--installed-python", action="store_true", help="this machine's Python modules, too")
    command.add_argument("--out", type=Path, required=True, help="folder of the corpus")
    command.add_argument(
        "--exclude", nargs="+", default=[], metavar="RATINGS", help="rated files to keep out"
    )
    command.add_argument("--test-share", type=float, default=0.1, help="of the texts, held out (0.1)")
    command.add_argument("--tags", type=int, default=0, help="so many revisions of git repositories, too")
    command.add_argument("--workers", type=int, default=0, help="processes (one for each core)")
    for stream in (sys.stdout, sys.stderr):  # what the locale cannot show is escaped, not fatal
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    options = parser.parse_args()
    installed = [INSTALLED_PYTHON] if options.installed_python else []
    try:
        config = CorpusConfig(
            (*options.sources, *installed), tuple(options.exclude), options.test_share, options.tags
        )
        built = build.build(config, options.out, options.workers)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; run the same command again to resume", file=sys.stderr)
        return 130
    for title, key in (("texts", "counts"), ("comments left out", "comments_left_out"), ("files", "files")):
        if found := [f"{count:,} {kind}" for kind, count in built[key].items() if count]:
            print(f"{title}: {', '.join(found)}")
    print(f"{printable(options.out)} has the corpus; look at {printable(options.out / PAGE)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
