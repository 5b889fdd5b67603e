"""The git repositories with texts to train and test the default model: their lists, and their fetching.

Each repository is pinned to one revision.
"""

from __future__ import annotations

from pathlib import Path

from simllm.errors import InputError
from simllm.io import read_lines
from simllm.io.output_folder import OutputFolder
from train.data.remote_repository import RemoteRepository


def read_repositories(file: Path) -> list[tuple[str, str]]:
    """Read the names and revisions of git repositories from a file.

    The default model is trained or tested on texts from these repositories.

    Args:
        file: A file with "owner/name", a tab and a revision on each line. Lines with # at the start are
            ignored.

    Returns:
        For each repository, "owner/name" and the revision.

    Raises:
        InputError: The file cannot be read, or a line is wrong.
    """
    rows = [(number, line.split("\t")) for number, line in read_lines.lines(file) if not line.startswith("#")]
    for number, row in rows:
        if len(row) != 2:
            raise InputError(f"{file}, line {number}: expected owner/name and a revision, with a tab between")
    return [(name, revision) for _, (name, revision) in rows]


def fetch_repository(folder: Path, name: str, revision: str, host: str) -> Path:
    """Fetch one revision of a repository into a local bare repository.

    If the local repository already exists, nothing is fetched, and its revision is not checked.

    Args:
        folder: The folder of all repositories.
        name: Owner and name of the repository, as in "owner/name".
        revision: The full hash of the commit that becomes HEAD.
        host: The URL before "/owner/name", or a local folder of repositories.

    Returns:
        The path of the local repository, `folder`/owner+name/repo.

    Raises:
        InputError: The repository cannot be fetched.
    """
    # Keep the last two folders of the path: the corpus chooses held-out texts by a hash of them.
    path = folder / name.replace("/", "+") / "repo"
    if not path.is_dir():
        with OutputFolder(path, "a repository").replacing(keep_edits=False) as partial:
            RemoteRepository(name, revision, host, partial).fetch_all()
    return path
