"""Reading chosen files of a git repository elsewhere, at one commit, without the rest."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from simllm.errors import InputError
from train.data.source_file import SourceFile

# No variable may point git to another repository; git must not ask for a password.
_LOCAL = frozenset(
    "GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_NAMESPACE GIT_SHALLOW_FILE "
    "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_CONFIG GIT_CONFIG_PARAMETERS".split()
)
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C"}
# A connection that stalls for a minute is given up.
_SETTINGS = ("gc.auto=0", "http.lowSpeedLimit=1", "http.lowSpeedTime=60", "fetch.negotiationAlgorithm=noop")
_FETCH = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--filter=blob:none"]


class Origin:
    """A repository at one commit; only the files that are asked for are fetched."""

    def __init__(self, repository: str, commit: str, host: str, folder: Path) -> None:
        """Fetch the names of the files into `folder`; raise InputError if that fails.

        Args:
            repository: Owner and name, as in "owner/name".
            commit: The full hash of the commit.
            host: What stands before the repository's name in its URL, or a folder of repositories.
            folder: A folder that does not exist yet; it becomes a bare repository.
        """
        self.repository = repository
        self.host = host
        self._url = f"{host if '://' in host else Path(host).absolute().as_uri()}/{repository}"
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        self._git = ["git", *settings, f"--git-dir={folder}"]
        self._run("init", "--quiet", "--bare", "--template=", str(folder))
        self._run(*_FETCH, "--depth=1", self._url, commit)
        self._blobs: dict[str, str] = {}  # of each ordinary file, by its path
        for line in self._run("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")[:-1]:
            facts, _, path = line.partition(b"\t")
            mode, _, blob = facts.decode().split()
            if mode.startswith("100"):
                self._blobs[path.decode("utf-8", "surrogateescape")] = blob

    def files(self, patterns: Iterable[str]) -> list[SourceFile]:
        """Fetch the files of these paths; raise InputError if one is missing or cannot be fetched.

        Files that one pattern with `*` matches are in the order of their names.
        """
        paths = [path for pattern in patterns for path in self._matching(pattern)]
        blobs = [self._blobs[path] for path in paths]
        self._run(*_FETCH, "--stdin", self._url, given="\n".join(dict.fromkeys(blobs)))
        contents = self._run("cat-file", "--batch=%(objectsize)", given="\n".join(blobs))
        files, place = [], 0
        for path in paths:
            begin = contents.index(b"\n", place) + 1
            size = int(contents[place : begin - 1])
            files.append(SourceFile(PurePosixPath(path), contents[begin : begin + size]))
            place = begin + size + 1
        return files

    def _matching(self, pattern: str) -> list[str]:
        if pattern in self._blobs:
            return [pattern]
        found = [path for path in self._blobs if fnmatchcase(path, pattern)] if "*" in pattern else []
        if not found:
            raise InputError(f"{self.repository}: has no file {pattern}")
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
            raise InputError("fetching data needs git, which is not installed") from None
        if done.returncode:
            said = " ".join(done.stderr.decode("utf-8", "replace").split())
            raise InputError(f"{self.repository}: cannot be fetched from {self.host} ({said})")
        return done.stdout
