"""Repositories as their authors publish them, made here, and the command that fetches from them."""

import hashlib
import json
import os
import subprocess
import sys

import pytest
import yaml

from tests.conftest import ROOT


class Host:
    """A folder of bare repositories, as a server of git has them."""

    def __init__(self, folder):
        self.folder = folder
        self.commits = {}

    def publish(self, repository, files):
        """Commit the files (path -> bytes or text) and serve the repository."""
        work = self.folder / f"{repository}.work"
        for path, content in files.items():
            file = work / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        served = self.folder / f"{repository}.git"
        self._git(work, "init", "--quiet")
        self._git(work, "add", "--all", "--force")
        self._git(work, "commit", "--quiet", "--message", "data")
        self._git(work, "clone", "--quiet", "--bare", str(work), str(served))
        for name in ("allowFilter", "allowAnySHA1InWant"):
            self._git(served, "config", f"uploadpack.{name}", "true")
        self.commits[repository] = self._git(work, "rev-parse", "HEAD")

    def _git(self, folder, *arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false"]
        command = ["git", "-C", str(folder), *identity, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="session")
def new_host(tmp_path_factory):
    return lambda: Host(tmp_path_factory.mktemp("host"))


@pytest.fixture
def host(new_host):
    return new_host()


def a_set(name, files, terms="share-alike"):
    return {"name": name, "about": "a set", "licence": "MIT", "terms": terms, "files": files}


def a_file(path, inputs, sha256="0" * 64, rows=1, **more):
    return {"path": path, "rows": rows, "sha256": sha256, "inputs": inputs, **more}


def write_catalog(file, host, sets, evaluation_texts=()):
    table = {"commits": host.commits, "evaluation_texts": list(evaluation_texts), "sets": sets}
    file.write_text(yaml.safe_dump(table), encoding="utf-8")
    return file


def fetch(*arguments, **environment):
    """Run the command line; return the finished process."""
    return subprocess.run(
        [sys.executable, "-m", "train.data", "fetch", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60, env={**os.environ, **environment},
    )  # fmt: skip


def packed_lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def digest(content):
    return hashlib.sha256(content).hexdigest()
