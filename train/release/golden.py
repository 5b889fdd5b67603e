"""Write a model folder's golden scores, which `simllm selftest` and the tests hold its scores against.

    python -m train.release.golden checkpoints/default

To be run once, when the model is made: afterwards a score that differs is a mistake.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from simllm.analysis import golden_scores
from simllm.errors import InputError


def main() -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.release.golden",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, help="a model folder")
    try:
        golden_scores.write(parser.parse_args().model)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
