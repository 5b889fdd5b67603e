"""Repeat the study of the SIMLLM paper: correlate metrics with human ratings.

    python docs/examples/repeat_the_study.py --data folder/with/rated/sets --out report
    python docs/examples/repeat_the_study.py --out report

`--data` is the folder of the sets that have human ratings: haque2022.jsonl (or the CSV table of Haque et
al.) and shen2021_leclair.jsonl; `python -m train.data fetch haque2022 shen2021_leclair` fetches them into
`data/rated`, the default. Without them, the script uses the small made-up set in `data/`, whose
figures mean nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from simllm.cli import main as cli_main

HERE = Path(__file__).parent
RATED = Path(os.environ.get("SIMLLM_DATA") or "data") / "rated"
SETS = ("haque2022.jsonl", "shen2021_leclair.jsonl")
METRICS = "simllm,bleu,rouge-l,chrf,jaccard,tf-idf"


def main() -> int:
    """Run the study and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, default=RATED, help="default: %(default)s")
    parser.add_argument("--out", default="report", help="folder of the report; default: %(default)s")
    parser.add_argument("--metrics", default=METRICS, help="default: %(default)s")
    options = parser.parse_args()

    ratings = [options.data / name for name in SETS if (options.data / name).is_file()]
    if not ratings:
        ratings = [HERE / "data" / "ratings.jsonl"]
        print(f"No rated sets in {options.data}: using made-up ratings.", file=sys.stderr)
    command = ["evaluate", "study", "--ratings", *map(str, ratings), "--metrics", options.metrics]
    return cli_main.main([*command, "--questions", "rq2,rq5", "--out", options.out, "-f", "text", "-q"])


if __name__ == "__main__":
    sys.exit(main())
