"""Reads the files of git repositories, of work trees and bare ones, without a checkout."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError

# Whatever repository the caller is in, this one is meant; and nothing is fetched for a partial clone.
_ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | {"GIT_NO_LAZY_FETCH": "1"}


@dataclass(frozen=True)
class Entry:
    """A file of a revision; its content goes by the name `blob`."""

    path: str
    blob: str
    size: int


def is_repository(folder: Path) -> bool:
    """Whether a folder is a git work tree or a bare repository."""
    bare = (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()
    return bare or (folder / ".git").exists()


class Repository:
    """One repository; every method raises InputError where git does not do what it is asked."""

    def __init__(self, folder: Path) -> None:
        inner = folder / ".git"
        self.folder = folder
        self.command = ["git", f"--git-dir={inner if inner.exists() else folder}"]

    def revisions(self, tags: int) -> list[str]:
        """HEAD, then so many tags, from the newest, spread evenly over all there are."""
        names = []
        if tags:
            listed = self._run("for-each-ref", "--sort=-creatordate", "--format=%(refname)", "refs/tags")
            every = listed.decode("utf-8", "surrogateescape").split()
            chosen = min(tags, len(every))
            names = [every[i * len(every) // chosen] for i in range(chosen)]
        return ["HEAD", *names]

    def files(self, revision: str) -> list[Entry]:
        """The ordinary files of a revision: no links, no submodules."""
        entries = []
        for line in self._run("ls-tree", "-r", "-l", "-z", "--full-tree", revision).split(b"\0")[:-1]:
            facts, _, path = line.partition(b"\t")
            mode, _, blob, size = facts.split()
            if mode.startswith(b"100"):
                length = int(size) if size.isdigit() else 0  # of an object that is not there
                entries.append(Entry(path.decode("utf-8", "replace"), blob.decode(), length))
        return entries

    def contents(self, blobs: Iterable[str]) -> Iterator[bytes | None]:
        """The blobs' contents, None for one that is missing."""
        command = [*self.command, "cat-file", "--batch"]
        with subprocess.Popen(
            command,
            env=_ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as git:
            assert git.stdin
            assert git.stdout
            for blob in blobs:
                git.stdin.write(blob.encode() + b"\n")
                git.stdin.flush()
                header = git.stdout.readline().split()
                if not header:
                    raise InputError(f"{self.folder}: git ended while it was read")
                if header[-1] == b"missing":
                    yield None
                else:
                    yield git.stdout.read(int(header[2]))
                    git.stdout.read(1)

    def _run(self, *arguments: str) -> bytes:
        try:
            done = subprocess.run(
                [*self.command, *arguments], env=_ENVIRONMENT, capture_output=True, check=False
            )
        except FileNotFoundError:
            raise InputError(f"{self.folder}: reading git repositories needs git") from None
        if done.returncode:
            message = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["git failed"]
            raise InputError(f"{self.folder}: {message[0]}")
        return done.stdout
