"""The parser of the command line: it imports the chosen command alone, and knows its options."""

import subprocess
import sys
from dataclasses import fields
from importlib import import_module

import pytest

from simllm.cli import parser
from simllm.cli.parser import COMMANDS, parse

GROUPS = {name.rpartition(" ")[0] for name in COMMANDS} - {""}


def test_a_command_imports_no_other_command():
    code = (
        "import sys; from simllm.cli.parser import parse; parse(['score', 'a', 'b']);"
        "print(*sorted(name[11:] for name in sys.modules if name.startswith('simllm.cli.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = (
        "parser report_option results score score_by_metrics score_cascade score_options shared_options\n"
    )
    assert done.stdout == expected


def test_help_lists_all_commands_without_their_modules(capsys):
    with pytest.raises(SystemExit):
        parse(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert all(f"{name} {text}" in shown for name, text in COMMANDS.items() if " " not in name)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in GROUPS])
def test_each_option_is_a_field_of_the_command(name):
    command = parser._Parser()
    parser._complete(name, command)
    options = {action.dest for action in command._actions} - {"help"}
    path = name.replace(" ", ".").replace(".import", ".import_")
    known = {field.name for field in fields(import_module(f"simllm.cli.{path}").Options)}
    assert options <= known
    assert known - options <= {"format", "output", "overwrite"}  # all commands have these fields
