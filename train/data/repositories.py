"""Remote git repositories: fetching files of one commit, or a whole revision."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from simllm.errors import InputError
from simllm.io import reading
from simllm.io.output_folder import OutputFolder
from train.data.readers import SourceFile

GITHUB = "https://github.com"

# Variables that could point git to another repository; they are removed.
_LOCAL = frozenset(
    "GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_NAMESPACE GIT_SHALLOW_FILE "
    "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_CONFIG GIT_CONFIG_PARAMETERS".split()
)
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C"}
# A connection that stalls for a minute is closed.
_SETTINGS = ("gc.auto=0", "http.lowSpeedLimit=1", "http.lowSpeedTime=60", "fetch.negotiationAlgorithm=noop")
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head")
_NO_CONTENTS = "--filter=blob:none"
_BATCH = 20_000  # files in one request, so that no request is too large for a server


class RemoteRepository:
    """One commit of a remote repository, and a new or empty folder, which becomes a bare repository."""

    def __init__(self, repository: str, commit: str, host: str, folder: Path) -> None:
        self._commit = commit
        self._failure = f"{repository}: cannot be fetched at {commit} from {host}"
        self._url = f"{host if '://' in host else Path(host).absolute().as_uri()}/{repository}"
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        self._git = ["git", *settings, f"--git-dir={folder}"]
        # The object of each ordinary file, by its path.
        self._blobs: dict[str, str] = {}
        # An empty template: no hooks of this machine in the repository.
        self._run("init", "--quiet", "--bare", "--template=", str(folder))

    def fetch_all(self) -> None:
        """Fetch all files of the commit, without earlier commits, and let HEAD point to the commit."""
        self._run(*_FETCH, "--depth=1", self._url, self._commit)
        self._run("update-ref", "--no-deref", "HEAD", self._commit)

    def files(self, patterns: Iterable[str]) -> list[SourceFile]:
        """Fetch files by paths or patterns, in which `*` matches any characters.

        The files are in the order of the patterns, and sorted by path within a pattern.
        """
        if not self._blobs:
            self._list_files()
        paths = [path for pattern in patterns for path in self._match(pattern)]
        blobs = [self._blobs[path] for path in paths]
        distinct = list(dict.fromkeys(blobs))
        for first in range(0, len(distinct), _BATCH):
            request = "\n".join(distinct[first : first + _BATCH])
            self._run(*_FETCH, _NO_CONTENTS, "--stdin", self._url, stdin=request)
        # The output is the size of each object, a line feed, its content and a line feed.
        contents = self._run("cat-file", "--batch=%(objectsize)", stdin="\n".join(blobs))
        files, place = [], 0
        for path in paths:
            begin = contents.index(b"\n", place) + 1
            size = int(contents[place : begin - 1])
            files.append(SourceFile(PurePosixPath(path), contents[begin : begin + size]))
            place = begin + size + 1
        return files

    def _list_files(self) -> None:
        """Fetch the list of the commit's ordinary files, without their contents."""
        self._run(*_FETCH, _NO_CONTENTS, "--depth=1", self._url, self._commit)
        for line in self._run("ls-tree", "-r", "-z", "--full-tree", self._commit).split(b"\0")[:-1]:
            facts, _, path = line.partition(b"\t")
            mode, _, blob = facts.decode().split()
            # Links have the mode 120000, submodules 160000.
            if mode.startswith("100"):
                self._blobs[path.decode("utf-8", "surrogateescape")] = blob

    def _match(self, pattern: str) -> list[str]:
        """Return the paths that match a path or a pattern, at least one."""
        if pattern in self._blobs:
            return [pattern]
        paths = [path for path in self._blobs if fnmatchcase(path, pattern)] if "*" in pattern else []
        if not paths:
            raise InputError(f"{self._failure} (no file {pattern} there)")
        return paths

    def _run(self, *arguments: str, stdin: str = "") -> bytes:
        """Run git, and return its output; an InputError has git's message."""
        environment = {name: value for name, value in os.environ.items() if name not in _LOCAL} | _QUIET
        try:
            done = subprocess.run(
                [*self._git, *arguments],
                env=environment,
                input=stdin.encode(),
                capture_output=True,
                check=False,
            )
        except FileNotFoundError:
            raise InputError(f"{self._failure} (git is not installed)") from None
        if done.returncode:
            message = " ".join(done.stderr.decode("utf-8", "replace").split())
            raise InputError(f"{self._failure} ({message})")
        return done.stdout


def read_repositories(file: Path) -> list[tuple[str, str]]:
    """Read pairs of "owner/name" and a revision from a file with a tab between them; # begins a comment."""
    rows = [
        (number, line.split("\t")) for number, line in reading.read_lines(file) if not line.startswith("#")
    ]
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
