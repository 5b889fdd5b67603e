"""`simllm repair sandbox`: test whether the sandbox isolates hostile programs on this machine."""

from __future__ import annotations

import argparse

from simllm.errors import InputError
from simllm.execution.compilers_and_interpreters import TOOLCHAINS, toolchain_version
from simllm.execution.isolation_check import attack_this_machine, raise_if_breached
from simllm.execution.sandbox import Sandbox
from simllm.io import output_file, tables
from simllm.io.tables import FORMATS as FORMATS

MODEL = None
HELP = "try out what contains programs here, and list the compilers"
EXAMPLES = """example:
  simllm repair sandbox
The exit status is 0 if programs are contained. Otherwise it is 2, and the message says what to install.
"""


def run(options: argparse.Namespace) -> None:
    """Run `simllm repair sandbox` with the parsed options: attack a sandbox, and write a table.

    The table has the result of each attack. An attack fails if the sandbox prevents it. If all attacks fail,
    the table also has the versions of the compilers and interpreters.

    Raises:
        InputError: An attack succeeded. The table is written nevertheless.
    """
    output_file.check_output(options.output, [], options.overwrite)
    version, results = attack_this_machine()
    rows = [("sandbox", version)]
    rows += [
        (f"attack: {attack}", f"succeeded: {result}" if result else "failed")
        for attack, result in results.items()
    ]
    if not any(results.values()):
        with Sandbox() as sandbox:
            rows += [(f"language: {language}", _version(sandbox, language)) for language in TOOLCHAINS]
    tables.write(tables.Table(("what", "result"), rows, {}), options.format, options.output)
    raise_if_breached(results)


def _version(sandbox: Sandbox, language: str) -> str:
    try:
        return toolchain_version(sandbox, language)
    except InputError as error:
        return str(error)
