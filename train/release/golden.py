"""Write a model folder's golden scores, which `simllm selftest` and the tests hold its scores against.

    python -m train.release.golden checkpoints/default

To be run once, when the model is made: afterwards a score that differs is a mistake.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from simllm.analysis import golden_scores
from train.runtime.tool_command import run_tool


def main() -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.release.golden",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, help="a model folder")
    options = parser.parse_args()
    return run_tool(lambda: golden_scores.write(options.model))


if __name__ == "__main__":
    sys.exit(main())
