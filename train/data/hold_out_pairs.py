"""Hold out a share of labelled text pairs for testing.

    python -m train.data.hold_out_pairs 'data/meaning/*nli*.jsonl.gz' -o runs/held-out.jsonl

Whether a pair is held out depends only on its first text. Therefore, all pairs with the same first text are
held out, or none of them. If pairs are added to a file later, the choice among the earlier pairs stays the
same. To train without the held-out pairs, list the output file under `exclude` in the configuration of the
training.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from simllm.errors import InputError
from simllm.io import output_file, reading
from train.corpus.deduplicate import identity
from train.corpus.sources import match_files
from train.runtime.command import make_parser, run_command


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.data.hold_out_pairs", __doc__)
    parser.add_argument("sources", nargs="+", help="files or glob patterns of JSON lines with a, b and label")
    parser.add_argument(
        "--share", type=float, default=0.1, help="share of the first texts; default: %(default)s"
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSON lines to write")
    return run_command(parser, write_held_out, overwrite=True)


def write_held_out(sources: Iterable[str], share: float, output: Path, overwrite: bool) -> None:
    """Write the held-out pairs of all files as JSON lines."""
    if not 0 < share < 1:
        raise InputError(f"--share {share:g}: expected more than 0 and less than 1")
    files = [file for pattern in sources for file in match_files(pattern)]
    output_file.check_output(output, overwrite, files)
    pairs = [json.dumps(pair) + "\n" for file in files for pair in held_out_pairs(file, share)]
    if not pairs:
        raise InputError("no pair is held out; name a larger --share")
    output_file.write(output, "".join(pairs))


def held_out_pairs(file: Path, share: float) -> Iterator[dict[str, str]]:
    """Yield the held-out pairs of a file of JSON lines with `a`, `b` and `label`.

    About `share` of the distinct first texts are held out, with all their pairs. `set` is the file's name
    before its first dot.
    """
    for where, row in reading.objects(file):
        first, second, label = (reading.text_under(row, name, where) for name in ("a", "b", "label"))
        # The first text alone decides, so that a text is never in both training and test, and pairs that are
        # added later change nothing.
        digest = hashlib.sha256(identity(first)).digest()
        if int.from_bytes(digest[:4]) < share * 2**32:
            yield {"a": first, "b": second, "label": label, "set": file.name.partition(".")[0]}


if __name__ == "__main__":
    sys.exit(main())
