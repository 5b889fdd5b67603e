"""Stand-in for the image of a GPU machine: torch and transformers are there, many other packages are not."""

import os
import subprocess
import sys

from tests.conftest import ROOT

ABSENT = [
    *("datasets", "rensa", "tree_sitter", "nltk", "ray", "rouge_score", "xlrd", "rapidfuzz", "jinja2"),
    *("matplotlib", "sentence_transformers", "pandas", "sklearn", "statsmodels", "markdown_it", "sacrebleu"),
]

_PROGRAM = """
import runpy, sys
sys.modules |= dict.fromkeys({absent!r})
for module, *arguments in {commands!r}:
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if ended.code:
            sys.exit(f"{{module}}: exit status {{ended.code}}")
"""


def run_without(absent, *commands):
    """Run commands, each a module and its arguments, one after another in a process without some packages."""
    commands = [[str(part) for part in command] for command in commands]
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(absent=list(absent), commands=commands)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
