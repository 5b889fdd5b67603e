"""Write golden scores into a model folder: the expected scores of fixed text pairs.

    python -m train.release.golden checkpoints/default

Run this command once, when the model is made. `simllm selftest` later compares new scores with the golden
scores. A difference is an error.
"""

from __future__ import annotations

import sys
from pathlib import Path

from simllm.analysis import golden_scores
from train.runtime.command import make_parser, run_command


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.release.golden", __doc__)
    parser.add_argument("model", type=Path, help="a model folder")
    return run_command(parser, lambda model: golden_scores.write_golden_scores(model))


if __name__ == "__main__":
    sys.exit(main())
