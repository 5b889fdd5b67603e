"""Command that prints the path of a training run's folder, for the job script `slurm/job.sh`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from simllm.errors import InputError
from train.runtime.config import read_values


def _main() -> int:
    """Print the key `out` of `CONFIG [key=value …]`; the exit status is 0, or 2 for bad input."""
    file, *overrides = sys.argv[1:]
    try:
        # As bytes: `print` refuses the surrogates that stand for other than ASCII characters in an ASCII
        # locale.
        sys.stdout.buffer.write(os.fsencode(read_values(Path(file), overrides)["out"]))
    except (InputError, KeyError, TypeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(_main())
