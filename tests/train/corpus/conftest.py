import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT

MODULE = '''"""A module."""


class Base:
    def area(self):
        """Returns how much room the shape takes on the page.

        The result is in square points, and it is never negative.
        """

    def name(self):
        """Gives what people call the shape."""


class Circle(Base):
    def area(self):
        """Calculates the surface of this circle."""


def {function}():
    """{summary}"""
'''


@pytest.fixture
def command():
    """Return a function that runs the command line and returns the finished process."""

    def run(*arguments, cwd=ROOT):
        return subprocess.run(
            [sys.executable, "-m", "train.corpus", *map(str, arguments)],
            cwd=cwd, capture_output=True, text=True, check=False, timeout=120, env={"PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    return run


@pytest.fixture
def tree(tmp_path):
    """Return a function that writes a folder of source files with functions, each with its own comment."""

    def make(folder, number=40, word="value"):
        folder.mkdir(parents=True)
        for n in range(number):
            code = MODULE if n == 0 else 'def {function}():\n    """{summary}"""\n'
            text = code.format(function=f"f{n}", summary=f"Counts the {word} of kind {n} in {folder.name}.")
            (folder / f"m{n}.py").write_text(text)
        return folder

    return make


@pytest.fixture
def git(tmp_path):
    """Return a function that runs git in a folder."""

    def run(folder, *arguments):
        identity = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)

    return run


def lines(folder, name):
    return (folder / name).read_text().splitlines()


def rows(folder, name):
    return [json.loads(line) for line in lines(folder, name)]
