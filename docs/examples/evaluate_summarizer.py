"""Evaluate a code summarizer end to end: score, compare with another system, look at the worst summaries.

    python docs/examples/evaluate_summarizer.py
    python docs/examples/evaluate_summarizer.py --references refs.txt --systems new.txt old.txt

Each file has one summary per line. Without arguments, the script uses the made-up outputs in `data/`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from simllm import SimLLM
from simllm.analysis.comparison import compare
from simllm.analysis.explanation import explain

DATA = Path(__file__).parent / "data"


def read(file: Path) -> list[str]:
    """Read one summary per line."""
    return file.read_text(encoding="utf-8").splitlines()


def main() -> None:
    """Run the evaluation and print its results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--references", type=Path, default=DATA / "references.txt")
    parser.add_argument(
        "--systems", type=Path, nargs="+", default=[DATA / "neural.txt", DATA / "retrieval.txt"]
    )
    options = parser.parse_args()

    metric = SimLLM()
    references = read(options.references)
    systems = {file.stem: read(file) for file in options.systems}

    print("1. Mean scores")
    scores = {name: metric.score(candidates, references) for name, candidates in systems.items()}
    for name, found in scores.items():
        print(f"   {name:<10} {found.mean:.3f}   better than {found.percentiles.mean():.1f}% of random pairs")

    print("\n2. May the difference be chance?")
    for difference in compare(metric, systems, [references]).differences:
        interval = f"95% interval {difference.low:.3f} to {difference.high:.3f}"
        print(f"   {difference.a} - {difference.b}: {difference.difference:.3f}, {interval}")
        print(f"   permutation test: p = {difference.permutation_p:.4f}")

    first, found = next(iter(scores.items()))
    print(f"\n3. The three worst summaries of {first}")
    worst = found.values.argsort()[:3]
    for row in worst:
        print(f"   {found.values[row]:.3f}  {systems[first][row]}")
        print(f"          reference: {references[row]}")

    print("\n4. Why the worst one scores low: each word, what it adds, and its closest word")
    for word in explain(metric, systems[first][worst[0]], references[worst[0]]).candidate:
        print(f"   {word.text:<14} {word.contribution:+.3f}   {word.match} ({word.similarity:.2f})")

    print(f"\nSignature, to report with the scores:\n   {found.signature}")


if __name__ == "__main__":
    main()
