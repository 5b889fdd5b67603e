"""The repositories with texts to train and test the default model, each pinned to one revision."""

from __future__ import annotations

from pathlib import Path

from simllm.errors import InputError
from simllm.io import read_lines
from simllm.io.output_folder import OutputFolder
from train.data.remote_repository import RemoteRepository


def read_repositories(file: Path) -> list[tuple[str, str]]:
    """Read pairs of "owner/name" and a revision from a file with a tab between them; # begins a comment."""
    rows = [(number, line.split("\t")) for number, line in read_lines.lines(file) if not line.startswith("#")]
    for number, row in rows:
        if len(row) != 2:
            raise InputError(f"{file}, line {number}: expected owner/name and a revision, with a tab between")
    return [(name, revision) for _, (name, revision) in rows]


def fetch_repository(folder: Path, name: str, revision: str, host: str) -> Path:
    """Fetch one revision of a repository into the bare repository `folder`/owner+name/repo, and return its
    path.

    An existing local repository is left as it is, and its revision is not checked.
    """
    # Keep the last two folders of the path: the corpus chooses held-out texts by a hash of them.
    path = folder / name.replace("/", "+") / "repo"
    if not path.is_dir():
        with OutputFolder(path, "a repository").replacing(keep_edits=False) as partial:
            RemoteRepository(name, revision, host, partial).fetch_all()
    return path
