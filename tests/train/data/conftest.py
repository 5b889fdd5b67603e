"""Local git repositories that replace the published ones, and the command that fetches from them."""

import hashlib
import io
import json
import subprocess
from contextlib import redirect_stderr, redirect_stdout

import pytest
import yaml

from tests.conftest import ROOT
from tests.train.conftest import Done
from train.data import __main__ as data


class Host:
    """A folder of bare git repositories, as on a server."""

    def __init__(self, folder):
        self.folder = folder
        self.commits = {}

    def publish(self, repository, files):
        """Add a repository with one commit; `files` is a dict from paths to contents (bytes or text)."""
        folder = self.folder / f"{repository}.git"
        stream = b"commit refs/heads/main\ncommitter A <a@b> 0 +0000\ndata 0\n"
        for path, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            stream += f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n"
        folder.parent.mkdir(exist_ok=True)
        self._git(folder, "init", "--quiet", "--bare")
        self._git(folder, "fast-import", "--quiet", given=stream)
        with (folder / "config").open("a") as config:
            config.write("[uploadpack]\n allowFilter = true\n allowAnySHA1InWant = true\n")
        self.commits[repository] = self._git(folder, "rev-parse", "main").decode().strip()

    def _git(self, folder, *arguments, given=b""):
        command = ["git", f"--git-dir={folder}", *arguments]
        return subprocess.run(command, input=given, capture_output=True, check=True).stdout


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
    """Call the command `python -m train.data fetch` in this process, which is fast."""
    output, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output), redirect_stderr(errors):
        patch.chdir(ROOT)
        patch.setattr("sys.argv", ["train.data", "fetch", *map(str, arguments)])
        for name, value in environment.items():
            patch.setenv(name, value)
        try:
            status = data.main()
        except SystemExit as ended:
            status = ended.code
    return Done(status, output.getvalue(), errors.getvalue())


def packed_lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def digest(content):
    return hashlib.sha256(content).hexdigest()
