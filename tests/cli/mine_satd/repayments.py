"""Commits that repay technical debt or break a rule for it, and calls of `simllm mine satd`."""

import json

from tests.command import run

FIELDS = [
    "id",
    "repository",
    "commit",
    "date",
    "created_commit",
    "created_date",
    "lifespan_days",
    "path",
    "line",
]
FIELDS += ["function", "language", "comment", "source", "reference", "split"]


def function(name, comment="", body="return 1"):
    """Return the code of a Python function."""
    lines = [f"def {name}():", *([f"    # {comment}"] if comment else []), f"    {body}"]
    return "\n".join(lines) + "\n"


def repaid(name, comment, body="return 2"):
    """Return the code of a function before and after its debt comment is removed and its body changed."""
    return function(name, comment), function(name, body=body)


LONG = " + ".join(["1"] * 600)
# For each file: its content before and after a commit.
CHANGES = {
    "kept.py": repaid("kept", "TODO: return two"),
    "two_words.py": repaid("two_words", "TODO: two"),
    "module.py": ("# TODO: add some code\n", "x = 1\n"),
    "gone.py": (function("gone", "TODO: remove this function"), function("other")),
    "unchanged.py": (function("unchanged", "TODO: return two"), function("unchanged")),
    "two_debts.py": repaid("two_debts", "TODO: return two\n    print()\n    # FIXME: return 3"),
    "still.py": (function("still", "TODO: return two"), function("still", "TODO: return three", "return 2")),
    "kept_again.py": repaid("kept", "TODO: return two"),
    "umlaut.py": repaid("umlaut", "TODO: return zw\u00f6lf"),
    "long.py": repaid("long", "TODO: return the sum", f"return {LONG}"),
    "not_too_long.py": repaid("not_too_long", "TODO: return the sum", f"return {LONG[: 4 * 500]}1"),
    "moved.py": (
        function("moved", "TODO: return two"),
        function("moved", body="return 2") + "# TODO: return two\n",
    ),
    "notes.txt": ("# TODO: write more notes\n", "x\n"),
}
FUNNEL = """\
simllm: 1 repository
        12  comments that admit debt are deleted
        11  have three words or more on that line
        10  stand in or above a function
         9  the function lives on
         8  the function's code changes
         6  no other such comment before
         5  no such comment after
         4  no duplicates
         3  ASCII
         2  at most 1,024 tokens each
simllm: train 0, validation 2, test 0
"""


def read(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def mine(folder, *options, out="items.jsonl", **more):
    return run("mine", "satd", folder / "all", "-o", folder / out, *options, **more)


def funnel(done):
    return json.loads(done.stdout)


def theirs_of(id_, comment, body):
    """Return an item of others without the name of its repository, commit and file."""
    source, reference = function("f", comment), function("f", body=body)
    return {"id": id_, "language": "python", "source": source, "reference": reference}


THEIRS = [
    {"id": 7, "language": "java", "comment": "TODO: check the range of a", "team": "x",
     "source": "public int f(int a) {\n    return a;\n}",
     "reference": "public int f(int a) {\n    return a < 0 ? 0 : a;\n}"},
    theirs_of(8, "TODO: return two", "return 2"),
    theirs_of(9, "TODO: two", "return 2"),
    theirs_of(10, "a nice function", "return 2"),
    theirs_of(11, "TODO: return two", "return   2"),
    {"language": "python", "source": function("f", "TODO: return two"), "reference": function("f")},
]  # fmt: skip
