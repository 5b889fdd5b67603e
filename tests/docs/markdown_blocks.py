"""Read and run the code blocks of the README and the documentation.

A comment on the line above a block gives its options:

    <!-- block: exit 2 -->                     must exit with this status
    <!-- block: needs bwrap -->                is not run without bubblewrap, unless REQUIRE_BWRAP=1
    <!-- block: needs mteb -->                 is not run without this package
    <!-- block: not run, needs SLURM -->       is not run; its commands are parsed

The `text` block right after a block is its expected output. A line `…` in it matches any lines.
"""

import argparse
import contextlib
import functools
import importlib.util
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

from simllm.cli.main import main
from simllm.model import saved_model
from tests.conftest import ROOT
from train.contrastive.config import ContrastiveConfig
from train.pretrain.config import PretrainConfig
from train.runtime import config

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
DATA = ROOT / "docs" / "examples" / "data"
_FENCE = re.compile(r"^( *)```(\w*)( .*)?$")
_COMMENT = re.compile(r"^ *<!-- block: (.*) -->$")
_COLOR = re.compile(r"\x1b\[[\d;]*m")
_OPERATORS = set("|<>&;")
# Commands of other projects, whose options are not checked.
_FOREIGN = {
    "apt-get",
    "cd",
    "docker",
    "git",
    "mkdir",
    "mkdocs",
    "pip",
    "pre-commit",
    "pytest",
    "python3",
    "spark-submit",
    "ruff",
    "mypy",
}
_FOREIGN |= {".", "export", ".ci/run", ".venv/bin/pip", ".venv/bin/pytest"}


@dataclass
class Block:
    """A code block and its expected output."""

    page: Path
    line: int
    language: str
    code: str
    notes: list[str]
    expected: str | None = None
    expected_lines: slice | None = None  # of the page, without the fences

    @property
    def missing(self):
        """Return the names of packages and programs that the block needs and this machine lacks."""
        needed = [note.removeprefix("needs ") for note in self.notes if note.startswith("needs ")]
        return [name for name in needed if not _is_there(name)]

    @property
    def run(self):
        return not any(note.startswith("not run") for note in self.notes)

    @property
    def status(self):
        return next((int(note.removeprefix("exit ")) for note in self.notes if note.startswith("exit ")), 0)

    def __str__(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def _is_there(name):
    if name == "bwrap":
        return os.environ.get("REQUIRE_BWRAP") == "1" or shutil.which("bwrap") is not None
    return importlib.util.find_spec({"libclang": "clang"}.get(name, name)) is not None


def blocks(page):
    """Return the shell and Python blocks of a page, in order."""
    found, lines = [], page.read_text(encoding="utf-8").splitlines()
    number, before = 0, None  # the block that ends right above
    while number < len(lines):
        match = _FENCE.match(lines[number])
        if not match:
            if lines[number].strip():
                before = None
            number += 1
            continue
        indent, language, attributes = match.groups()
        end = next(n for n in range(number + 1, len(lines)) if lines[n] == f"{indent}```")
        code = "\n".join(line.removeprefix(indent) for line in lines[number + 1 : end])
        if language in ("sh", "python") and not attributes:  # a block with a title shows a file
            comment = _COMMENT.match(lines[number - 1]) if number else None
            notes = re.split(r"; ", comment[1]) if comment else []
            before = Block(page, number + 1, language, code, notes)
            found.append(before)
        else:
            if language == "text" and before:
                before.expected, before.expected_lines = code, slice(number + 1, end)
            before = None
        number = end + 1
    return found


class Session:
    """Runs the blocks of one page, in a folder that contains the example files."""

    def __init__(self, folder):
        self.folder = folder
        self.names = {}
        for file in DATA.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        for name in ("checkpoints", "configs", "docs", "slurm"):
            (folder / name).symlink_to(ROOT / name)

    def run(self, block):
        """Run a block and return its output: stdout and stderr of a shell block, stdout of a Python block."""
        out = _Terminal()
        err = _Stderr(out) if block.language == "sh" else io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.chdir(self.folder):
            patch.setattr(os, "environ", os.environ.copy())
            patch.setenv("COLUMNS", "100")
            # For shell blocks (which get a copy of this dict), and for commands that simllm runs.
            patch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
            patch.setenv("PYTHONPATH", str(ROOT))
            patch.setattr(saved_model, "load", _load_once)
            patch.setenv("XDG_CACHE_HOME", str(self.folder / "cache"))
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                if block.language == "python":
                    exec(compile(block.code, str(block), "exec"), self.names)
                    status = 0
                else:
                    status = self._shell(block.code, out)
        assert status == block.status, f"{block}: exit status {status}\n{out.getvalue()}"
        return _COLOR.sub("", out.getvalue())

    def _shell(self, code, out):
        status = 0
        for command in commands(code):
            words = shlex.split(command, comments=True)
            if words[0] == "simllm" and not _OPERATORS & set(command):
                status = main(words[1:])
            else:
                status = _process(command, self.folder, out)
            if status:
                break
        return status


# A page loads the same model many times.
_load_once = functools.cache(saved_model.load)


def _process(command, folder, out):
    done = subprocess.run(
        ["bash", "-euc", command], cwd=folder, env=dict(os.environ), timeout=600, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    out.write(done.stdout)
    return done.returncode


class _Terminal(io.StringIO):
    def isatty(self):
        return True


class _Stderr(io.StringIO):
    """Standard error that is captured with the output; it is no terminal, so no progress bar is drawn."""

    def __init__(self, out):
        super().__init__()
        self.out = out

    def write(self, text):
        return self.out.write(text)


def commands(code):
    """Return the commands of a shell block, each as one line; lines with only a comment are left out."""
    lines = code.replace("\\\n", " ").splitlines()
    return [line for line in lines if shlex.split(line, comments=True)]


class _ParsedError(Exception):
    def __init__(self, options):
        self.options = options


def parse(command):
    """Parse a command of a block that is not run; raise if an option or a config key is unknown."""
    for part in re.split(r" && | \| ", command):
        words = shlex.split(part.partition(" > ")[0].partition(" < ")[0], comments=True)
        while "=" in words[0]:  # NAME=value before the command
            words.pop(0)
        if words[0] == "taskset":
            words = words[3:]
        if words[0] in ("torchrun", "accelerate"):
            words = ["python", *words[words.index("-m") :]]
        if words[0] == "sbatch":
            words = _job(words[1:])
        words[0] = words[0].removeprefix(".venv/bin/")
        if words[0] == "simllm":
            _parse_module("simllm", words[1:])
        elif words[:2] == ["python", "-m"]:
            _parse_module(words[2], words[3:])
        elif words[0] == "python":
            assert (ROOT / words[1]).is_file(), words[1]
        else:
            assert words[0] in _FOREIGN, f"unknown command: {part}"


def _job(words):
    """Return the command that a SLURM script runs; `words` are the arguments of sbatch."""
    options = [word for word in words if word.endswith(".sbatch")]
    script, arguments = options[0], words[words.index(options[0]) + 1 :]
    assert (ROOT / script).is_file(), script
    arguments = [argument.replace("%a", "1") for argument in arguments]
    return [*_JOBS[Path(script).stem].split(), *arguments]


# The commands that job scripts run.
_JOBS = {
    "pretrain": "python -m train.pretrain",
    "contrastive": "python -m train.contrastive",
    "evaluate": "simllm evaluate",
    "gpu_acceptance": "python -m tests.benchmarks.gpu",
    "corpus": "python -m train.corpus build",
    "score": "simllm score",
}


# The commands that take `key=value`, and the class of their configuration.
_CONFIGS = {
    "train.pretrain": lambda: PretrainConfig,
    "train.contrastive": lambda: ContrastiveConfig,
    "train.release.measure": lambda: import_module("train.release.measure").MeasureConfig,
}


def _parse_module(module, arguments):
    def stopping(name):
        real = getattr(argparse.ArgumentParser, name)

        def parse_and_stop(*arguments, **options):
            raise _ParsedError(real(*arguments, **options))

        return parse_and_stop

    err = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(ROOT), contextlib.redirect_stderr(err):
        for name in ("parse_args", "parse_intermixed_args"):
            patch.setattr(argparse.ArgumentParser, name, stopping(name))
        patch.setattr(sys, "argv", [module, *arguments])
        try:
            if module == "simllm":
                main(arguments)
            else:
                # Otherwise runpy warns that the module is already loaded; it runs `__main__` of a package.
                for loaded in (module, f"{module}.__main__"):
                    patch.delitem(sys.modules, loaded, raising=False)
                runpy.run_module(module, run_name="__main__")
        except _ParsedError as parsed:
            options = parsed.options
        except SystemExit as error:
            if error.code == 0:  # --help or --version
                return
            raise AssertionError(err.getvalue()) from None
        except BaseException as error:
            raise AssertionError(f"{module} {arguments}: {error!r}") from error
        if module in _CONFIGS:
            config.load(_CONFIGS[module](), options.config, options.overrides)


_VERSION = re.compile(r"version:[^|\s]+|(?<=:)\d+\.\d+\.\d+")
# In arrays, NumPy writes "0." for 0.0.
_NUMBER = re.compile(r"[-+]?(?:\d+(?:,\d{3})+|\d+)?(?:\.?\d+)(?:e[-+]?\d+)?(?:(?<=\d)\.(?=\]| +-?\d))?")


def same(expected, printed):
    """Return whether a text equals the expected one; the last digit of a number may differ by one."""
    return _same_lines(_lines(expected), _lines(printed))


def _lines(text):
    return [line.rstrip() for line in _VERSION.sub("version", text).strip("\n").splitlines()]


def _same_lines(expected, printed):
    if not expected:
        return not printed
    if expected[0].strip() == "…":
        return any(_same_lines(expected[1:], printed[n:]) for n in range(len(printed) + 1))
    return bool(printed) and _same_line(expected[0], printed[0]) and _same_lines(expected[1:], printed[1:])


def _same_line(expected, printed):
    if expected == printed:
        return True
    if _NUMBER.sub("#", expected).split() != _NUMBER.sub("#", printed).split():
        return False
    pairs = zip(_NUMBER.findall(expected), _NUMBER.findall(printed), strict=True)
    return all(abs(_value(a) - _value(b)) <= 1.01 * _last_digit(a) for a, b in pairs)


def _value(number):
    return float(number.replace(",", ""))


def _last_digit(number):
    """Return the value of one unit in the last digit of a number, such as 0.01 for "3.14".

    NumPy writes "0." for 0.0, so that a point has at least one digit after it.
    """
    digits, _, exponent = number.replace(",", "").partition("e")
    _, point, decimals = digits.partition(".")
    return 10.0 ** (int(exponent or 0) - max(len(decimals), len(point)))
