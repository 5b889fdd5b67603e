r"""Make the released model folder: half-precision weights, score scale, logs, and a model card with figures.

    python -m train.release runs/mini runs/contrastive --out checkpoints/default \
        --notes checkpoints/notes.md --centre runs/mini/corpus/test.txt

List the folders of the training runs in the order in which they trained. The model of the last run is
released. The file after `--notes` is the part of the model card that is written by hand (see
`train.release.refresh`, which writes the card anew). The file after `--centre` has comments;
embeddings are shifted so that the mean embedding of these comments is 0. The score scale, which converts a
score to a percentile, needs the option `--calibrate`.

After `--seeds`, list runs that repeat the last run with other random seeds. The last run and these runs are
then compared by the dev criterion. Here, it is the mean of their figures on dev data, so a higher value is
better. The model with the highest value is released. The file after `--config` names the data sets on which
the model is measured; the default is configs/measure.yaml.
"""

from __future__ import annotations

import sys
from pathlib import Path

from train.release.folder import Release, write_release
from train.runtime.command import make_parser, run_command


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.release", __doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="folders of training runs")
    parser.add_argument("--out", required=True, type=Path, help="the model folder to make")
    parser.add_argument("--notes", required=True, type=Path, help="Markdown for the card")
    parser.add_argument("--config", type=Path, default=Path("configs/measure.yaml"), help="%(default)s")
    parser.add_argument(
        "--after", type=Path, metavar="MODEL", help="the released model from which the first run started"
    )
    parser.add_argument(
        "--centre", type=Path, metavar="COMMENTS",
        help="comments, one per line; embeddings are shifted so that their mean is 0",
    )  # fmt: skip
    parser.add_argument(
        "--calibrate", type=Path, metavar="COMMENTS",
        help="held-out comments for the score scale (see train.release.calibrate)",
    )  # fmt: skip
    parser.add_argument(
        "--calibrate-meaning", type=Path, metavar="FILE",
        help="output of train.data.hold_out_pairs: calibrates the probability of the meaning head",
    )  # fmt: skip
    parser.add_argument(
        "--grades", type=Path, metavar="FILE",
        help="YAML file of graded pairs, to which the graded output of the meaning head is fitted",
    )  # fmt: skip
    parser.add_argument(
        "--held-out", type=Path, metavar="RUN",
        help="a run like the last one, without the deciding words of the contrast set",
    )  # fmt: skip
    parser.add_argument(
        "--seeds", nargs="*", default=[], type=Path, metavar="RUN", help="runs like the last, other seeds"
    )
    parser.add_argument("--ablations", type=Path, metavar="FILE", help="output of train.release.ablations")
    return run_command(parser, lambda **options: write_release(Release(**options)))


if __name__ == "__main__":
    sys.exit(main())
