"""Benchmark of `simllm evaluate classifiers`: bootstrap intervals against scikit-learn, and large inputs.

python -m tests.benchmarks.classifiers
python -m tests.benchmarks.classifiers --json tests/benchmarks/results/classifiers-cpu.json
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn import metrics

from simllm.stats.classification import binary_metrics, bootstrap, count
from simllm.stats.resampling import interval
from tests.benchmarks import machine


def intervals(n, resamples):
    """Return the seconds for bootstrap intervals, by simllm and by resampling items with scikit-learn."""
    random = np.random.default_rng(0)
    gold = random.integers(0, 2, n)
    predicted = np.where(random.random(n) < 0.8, gold, 1 - gold)
    begun = time.perf_counter()
    for _ in range(20):
        draws = bootstrap(count(gold, predicted, 2), binary_metrics)
        ours = {name: interval(values, n) for name, values in draws.items()}
    seconds = (time.perf_counter() - begun) / 20
    functions = {
        "f1": lambda a, b: metrics.f1_score(a, b, pos_label=0),
        "f2": lambda a, b: metrics.fbeta_score(a, b, beta=2, pos_label=0),
        "mcc": metrics.matthews_corrcoef,
        "balanced_accuracy": metrics.balanced_accuracy_score,
        "kappa": metrics.cohen_kappa_score,
    }
    values = {name: [] for name in functions}
    begun = time.perf_counter()
    for _ in range(resamples):
        rows = random.integers(0, n, n)
        for name, function in functions.items():
            values[name].append(function(gold[rows], predicted[rows]))
    theirs = (time.perf_counter() - begun) / resamples * 10_000
    for name, found in values.items():
        assert np.allclose(ours[name], np.quantile(found, [0.025, 0.975]), atol=0.02), name
    return {"items": n, "simllm s": seconds, "scikit-learn s": theirs, "ratio": theirs / seconds}


def many_rows(n):
    """Return the seconds and peak memory of `simllm evaluate classifiers` for n rows of two classifiers."""
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        gold = random.integers(0, 2, n // 2)
        with file.open("w") as out:
            out.write("item,classifier,gold,predicted,probability,suite\n")
            for name, noise in (("a", 0.25), ("b", 0.3)):
                chance = np.clip(
                    gold * (1 - noise) + (1 - gold) * noise + random.normal(0, 0.25, n // 2), 0, 1
                )
                for item, (label, p) in enumerate(zip(gold, chance, strict=True)):
                    out.write(f"{item},{name},{label},{int(p >= 0.5)},{p:.4f},s{item % 5}\n")
        command = [sys.executable, "-m", "simllm", "evaluate", "classifiers", str(file), "--groups", "suite"]
        begun = time.perf_counter()
        subprocess.run([*command, "--out", f"{folder}/report", "-q"], check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"rows": n, "seconds": seconds, "peak MiB": peak}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=300, help="of scikit-learn, extrapolated to 10,000")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result = {
        **machine.facts(),
        "intervals": intervals(options.items, options.resamples),
        "study": many_rows(options.rows),
    }
    print(json.dumps(result, indent=1))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
