"""Print the folder of a training run: the value of the key `out`, after overrides.

    python -m train.runtime.print_run_folder CONFIG [key=value …]

The job scripts use it, before they start the training (see `slurm/job.sh`).
"""

from __future__ import annotations

import sys
from pathlib import Path

from simllm.errors import InputError
from train.runtime.command import make_parser, run_command
from train.runtime.config import read_values


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.runtime.print_run_folder", __doc__)
    parser.add_argument("config", type=Path, help="YAML file, such as configs/debug.yaml")
    parser.add_argument("overrides", nargs="*", metavar="key=value", default=[], help="such as updates=100")
    return run_command(parser, _print, intermixed=True)


def _print(config: Path, overrides: list[str]) -> None:
    values = read_values(config, overrides)
    if not isinstance(values, dict) or not isinstance(values.get("out"), str):
        raise InputError(f"{config}: expected a folder under out")
    print(values["out"])


if __name__ == "__main__":
    sys.exit(main())
