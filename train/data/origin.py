"""Fetching from git repositories elsewhere at one commit: all files of it, or only chosen ones."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from simllm.errors import InputError
from train.data.source_file import SourceFile

GITHUB = "https://github.com"

# No variable may point git to another repository; git must not ask for a password.
_LOCAL = frozenset(
    "GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_NAMESPACE GIT_SHALLOW_FILE "
    "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_CONFIG GIT_CONFIG_PARAMETERS".split()
)
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C"}
# A connection that stalls for a minute is given up.
_SETTINGS = ("gc.auto=0", "http.lowSpeedLimit=1", "http.lowSpeedTime=60", "fetch.negotiationAlgorithm=noop")
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head")
_NO_CONTENTS = "--filter=blob:none"
_BATCH = 20_000  # files that are asked for at once, so that no request is too large for a server


class Origin:
    """A repository elsewhere, at one commit, and the local folder that takes what is fetched from it."""

    def __init__(self, repository: str, commit: str, host: str, folder: Path) -> None:
        """Make the folder a bare repository, unless it is one; nothing is fetched yet.

        Args:
            repository: Owner and name, as in "owner/name".
            commit: The full hash of the commit.
            host: What stands before the repository's name in its URL, or a folder of repositories.
            folder: A new folder, or one without files of git.
        """
        self._commit = commit
        self._failure = f"{repository}: cannot be fetched at {commit} from {host}"
        self._url = f"{host if '://' in host else Path(host).absolute().as_uri()}/{repository}"
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        self._git = ["git", *settings, f"--git-dir={folder}"]
        self._blobs: dict[str, str] = {}  # of each ordinary file, by its path
        self._run("init", "--quiet", "--bare", "--template=", str(folder))

    def fetch_all(self) -> None:
        """Fetch all files of the commit, without its history; HEAD becomes the commit.

        Raises InputError if that fails.
        """
        self._run(*_FETCH, "--depth=1", self._url, self._commit)
        self._run("update-ref", "--no-deref", "HEAD", self._commit)

    def files(self, patterns: Iterable[str]) -> list[SourceFile]:
        """Fetch the files of these paths; raise InputError if one is missing or cannot be fetched.

        Files that one pattern with `*` matches are in the order of their names.
        """
        if not self._blobs:
            self._list_files()
        paths = [path for pattern in patterns for path in self._matching(pattern)]
        blobs = [self._blobs[path] for path in paths]
        different = list(dict.fromkeys(blobs))
        for first in range(0, len(different), _BATCH):
            wanted = "\n".join(different[first : first + _BATCH])
            self._run(*_FETCH, _NO_CONTENTS, "--stdin", self._url, given=wanted)
        contents = self._run("cat-file", "--batch=%(objectsize)", given="\n".join(blobs))
        files, place = [], 0
        for path in paths:
            begin = contents.index(b"\n", place) + 1
            size = int(contents[place : begin - 1])
            files.append(SourceFile(PurePosixPath(path), contents[begin : begin + size]))
            place = begin + size + 1
        return files

    def _list_files(self) -> None:
        """Fetch the names of the files, without contents, and without links and submodules."""
        self._run(*_FETCH, _NO_CONTENTS, "--depth=1", self._url, self._commit)
        for line in self._run("ls-tree", "-r", "-z", "--full-tree", self._commit).split(b"\0")[:-1]:
            facts, _, path = line.partition(b"\t")
            mode, _, blob = facts.decode().split()
            if mode.startswith("100"):
                self._blobs[path.decode("utf-8", "surrogateescape")] = blob

    def _matching(self, pattern: str) -> list[str]:
        if pattern in self._blobs:
            return [pattern]
        found = [path for path in self._blobs if fnmatchcase(path, pattern)] if "*" in pattern else []
        if not found:
            raise InputError(f"{self._failure} (no file {pattern} there)")
        return found

    def _run(self, *arguments: str, given: str = "") -> bytes:
        environment = {name: value for name, value in os.environ.items() if name not in _LOCAL} | _QUIET
        try:
            done = subprocess.run(
                [*self._git, *arguments],
                env=environment,
                input=given.encode(),
                capture_output=True,
                check=False,
            )
        except FileNotFoundError:
            raise InputError(f"{self._failure} (git is not installed)") from None
        if done.returncode:
            said = " ".join(done.stderr.decode("utf-8", "replace").split())
            raise InputError(f"{self._failure} ({said})")
        return done.stdout
