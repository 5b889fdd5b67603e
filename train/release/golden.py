"""Write golden scores into a model folder: the expected scores of fixed text pairs.

    python -m train.release.golden checkpoints/default

Run this command once, when the model is made. `simllm selftest` later compares new scores with the golden
scores. A difference is an error.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from simllm.analysis import golden_scores
from train.runtime.tools import run_tool


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.release.golden",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, help="a model folder")
    options = parser.parse_args()
    return run_tool(lambda: golden_scores.write_golden_scores(options.model))


if __name__ == "__main__":
    sys.exit(main())
