"""`simllm repair sandbox`: test whether the sandbox isolates hostile programs on this machine."""

from __future__ import annotations

from dataclasses import dataclass

from simllm.cli.shared_options import CommonOptions
from simllm.errors import InputError
from simllm.execution.sandbox import Sandbox, attack_this_machine, raise_if_breached
from simllm.execution.toolchains import TOOLCHAINS, toolchain_version
from simllm.io import output_file, tables
from simllm.io.tables import FORMATS as FORMATS

MODEL = None
EXAMPLES = """example:
  simllm repair sandbox
The exit status is 0 if programs are contained. Otherwise it is 2, and the message says what to install.
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm repair sandbox`."""


def run(options: Options) -> None:
    """Run `simllm repair sandbox`: attack a sandbox, and write a table with the result of each attack.

    If all attacks fail, the table has the versions of the compilers, too. A successful attack is an error
    after the table is written.
    """
    output_file.check_output(options.output, options.overwrite)
    version, results = attack_this_machine()
    rows = [("sandbox", version)]
    rows += [
        (f"attack: {attack}", f"succeeded: {result}" if result else "failed")
        for attack, result in results.items()
    ]
    # Nothing else runs in a sandbox that leaks.
    if not any(results.values()):
        with Sandbox() as sandbox:
            rows += [(f"language: {language}", _version(sandbox, language)) for language in TOOLCHAINS]
    # The table first: it says which attack succeeded.
    tables.write(tables.Table(("what", "result"), rows, {}), options.format, options.output)
    raise_if_breached(results)


def _version(sandbox: Sandbox, language: str) -> str:
    try:
        return toolchain_version(sandbox, language)
    except InputError as error:
        return str(error)
