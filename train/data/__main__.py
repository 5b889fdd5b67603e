"""Fetch the public data sets for training and evaluation.

    python -m train.data fetch
    python -m train.data fetch emse_deepcom stsb_en --root data
    python -m train.data fetch --list

Each data set is read from a git repository, at a fixed commit. The repository belongs to the authors of the
data set, or has a copy of the data set. Only the needed files are fetched. Each converted file is verified.
Existing intact files are not changed, so rerun the same command to resume. `--list` shows the licence and
the terms of each data set. Exit status: 0 done, 2 bad input or no connection, 130 interrupted from the
keyboard.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from simllm.io import tables
from train.data.catalog import CATALOG_FILE, Catalog, DataSet
from train.data.fetch import fetch
from train.data.repositories import GITHUB
from train.runtime import config
from train.runtime.command import make_parser, run_command
from train.runtime.config import data_root


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.data", __doc__)
    fetching = parser.add_subparsers(required=True, metavar="fetch").add_parser(
        "fetch", help="fetch data sets"
    )
    fetching.add_argument("names", nargs="*", metavar="NAME", help="data sets; default: all")
    fetching.add_argument(
        "--root", type=Path, default=Path(data_root()),
        help="folder of the data; default: the environment variable SIMLLM_DATA, or data",
    )  # fmt: skip
    fetching.add_argument(
        "--list", action="store_true", dest="show", help="show the data sets, and fetch nothing"
    )
    fetching.add_argument(
        "--host", default=GITHUB, help="URL or folder of the repositories OWNER/NAME; default: %(default)s"
    )
    fetching.add_argument(
        "--catalog",
        type=Path,
        default=CATALOG_FILE,
        help="table of the data sets; default: %(default)s",
    )
    return run_command(parser, _fetch)


def _fetch(names: list[str], root: Path, show: bool, host: str, catalog: Path) -> None:
    """Fetch the data sets that the command line names, or print them as a table."""
    loaded = config.load(Catalog, catalog, [])
    sets = loaded.choose(names)
    if show:
        _print_table(sets)
        return
    with TemporaryDirectory(prefix="simllm-data-") as cache:
        fetch(loaded, sets, root, host, Path(cache))


def _print_table(sets: list[DataSet]) -> None:
    """Print the data sets as a table, without cutting long entries."""
    rows = [["name", "texts", "licence", "terms", "what"]]
    rows += [[one.name, f"{one.rows:,}", one.licence, one.terms, one.about] for one in sets]
    sys.stdout.write(tables.lines(rows, [max(map(len, column)) for column in zip(*rows, strict=True)]))


if __name__ == "__main__":
    sys.exit(main())
