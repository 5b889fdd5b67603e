"""Benchmark of scoring, against sentence-transformers and BERTScore with the same weights.

    python -m tests.benchmarks.score
    python -m tests.benchmarks.score --size configs/base.yaml --pairs 500
    taskset -c 1 python -m tests.benchmarks.score --pairs 1000 --json tests/benchmarks/results/score-cpu.json

All scorers score the same pairs with the same model folder, in turns, and the fastest turn of each
counts. The embeddings of sentence-transformers come from its method `encode` at the defaults;
their cosines are compared with our scores. Without --source, the pairs are the first
paragraphs of neighbouring docstrings of the installed Python.

`onnxruntime` is the engine without torch, in float32; `exact` and `fast` use torch. For these two, the share
of the machine's speed is printed, too: the operations per second of the encoder's matrix products, divided
by those of one large matrix product in the same precision. Both are measured in each turn.
Operations for repeated texts, for padding and in the meaning head do not count.
If only one core is allowed, processor time is measured instead of clock time: on an idle
machine they are equal, and on a busy machine processor time excludes the waiting.
"""

import argparse
import dataclasses
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer

from simllm import SimLLM
from simllm.io import reading
from simllm.metric import ENGINES
from simllm.metrics.table import METRICS
from simllm.model import saved_model
from simllm.model.network import Encoder
from simllm.model.saved_model import default_model
from simllm.model.torch_engine import MODES, prepare_module
from simllm.text_cleaning import clean
from tests.benchmarks import machine
from train.corpus import sources
from train.corpus.extract import extract
from train.corpus.parts import Tally
from train.pretrain.config import PretrainConfig
from train.runtime.config import load


def pairs(source, count, fields):
    """Return up to `count` candidates and as many references; all of these texts differ."""
    if source is None:
        codes = (item for item in sources.read(sources.INSTALLED_PYTHON, 0, Tally()))
        comments = (found for code in codes for found in extract(code.data, code.language, Counter()))
        texts = (found.description or found.summary for found in comments)
    else:
        texts = (row[field] for _, row in reading.objects(source) for field in fields)
    # The score of an empty text does not come from an embedding.
    read = (text for text in dict.fromkeys(texts) if clean(text))
    texts = list(itertools.islice(read, 2 * count))
    return texts[0 : len(texts) // 2 * 2 : 2], texts[1::2]


def ways(model):
    """Return a dict from the name of each scorer to a function that scores candidates and references."""
    modes = {mode: SimLLM(model, mode=mode, engine="torch") for mode in ("exact", "fast")}
    theirs = SentenceTransformer(str(model), device=str(modes["exact"].engine.device))

    def sentence_transformers(candidates, references):
        a, b = theirs.encode(candidates), theirs.encode(references)
        return (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))

    found = {"sentence-transformers": sentence_transformers}
    for mode, metric in [*modes.items()]:
        if metric.head:
            modes[f"{mode} without head"] = without_head = SimLLM(model, mode=mode)
            without_head.engine.use_head(None)
            without_head.head = None
    modes["onnxruntime"] = SimLLM(model, engine="onnxruntime")
    for name, metric in modes.items():
        found[name] = lambda c, r, metric=metric: metric.score(c, r).values
    try:
        from bert_score import BERTScorer
    except ModuleNotFoundError:
        return found
    layers = modes["exact"].model.encoder.config.num_hidden_layers
    scorer = BERTScorer(model_type=str(model), num_layers=layers)
    return found | {"BERTScore": lambda c, r: scorer.score(c, r)[2].numpy()}


def first_score(model, engine):
    """Return the seconds from the start of a process to its first score."""
    options = f"{str(model)!r}, engine={engine!r}"
    program = f"from simllm import SimLLM; SimLLM({options}).score(['a list'], ['a text'])"
    times = []
    for _ in range(3):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True)
        times.append(time.perf_counter() - started)
    return round(min(times), 2)


def of_size(config, folder):
    """Write a model folder with random weights, in the size of a pretraining configuration."""
    included = saved_model.load(default_model())
    size = load(PretrainConfig, config, []).model
    encoder = Encoder(dataclasses.replace(size, vocab_size=included.encoder.config.vocab_size))
    info = dataclasses.replace(included.info, calibration=None)
    saved_model.save(folder, encoder, included.tokenizer, info, "")
    return folder


def measure(scorers, candidates, references, turns, clock):
    """Measure the time of all scorers and the speed of the machine, in turns.

    Returns:
        Three dicts: the seconds of each scorer's fastest turn, the scores by each scorer, and for each mode
        ("exact" or "fast") the highest speed of a matrix product in its number format, in operations per
        second. This speed is measured in each turn, too, because the speed of a shared machine changes.
    """
    seconds, values = dict.fromkeys(scorers, float("inf")), {}
    for score in scorers.values():
        score(candidates[:64], references[:64])  # warms up
    rates = dict.fromkeys(("exact", "fast"), 0.0)
    for _ in range(turns):
        for name, score in scorers.items():
            started = clock()
            values[name] = score(candidates, references)
            seconds[name] = min(seconds[name], clock() - started)
        rates = {mode: max(rate, matrix_rate(mode, clock)) for mode, rate in rates.items()}
    return seconds, values, rates


def encoder_flops(model, texts):
    """Count the encoder's operations for texts: equal texts count once, and a multiply-add counts as two."""
    config = model.model.encoder.config
    hidden, inner = config.hidden_size, config.intermediate_size
    distinct = {window for windows in model.tokenize(texts).inputs for window in windows}
    lengths = np.array([len(ids) for ids in distinct], float)
    layer = (8 * hidden**2 + 4 * hidden * inner) * lengths + 4 * hidden * lengths**2
    return config.num_hidden_layers * float(layer.sum())


def matrix_rate(mode, clock, size=1024):
    """Return the operations a second of a product of square matrices, in the precision of a mode."""
    with torch.inference_mode():
        layer = prepare_module(torch.nn.Linear(size, size, device="cpu"), mode)
        matrix = torch.randn(size, size, dtype=MODES[mode])
        times = []
        while len(times) < 2 or sum(times) < 0.3:
            started = clock()
            layer(matrix)
            times.append(clock() - started)
    return 2 * size**3 / min(times)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=default_model(), help="a model folder")
    parser.add_argument("--size", type=Path, help="instead: random weights, of this configuration's size")
    parser.add_argument("--source", type=Path, help="JSON lines of pairs")
    parser.add_argument("--fields", nargs=2, default=["candidate", "reference"], metavar="NAME")
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--nli", metavar="MODEL", help="an NLI model, as for the metric nli=MODEL")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    candidates, references = pairs(options.source, options.pairs, options.fields)
    with tempfile.TemporaryDirectory() as folder:
        model = of_size(options.size, Path(folder) / "model") if options.size else options.model
        scorers = ways(model)
        if options.nli:
            scorers["NLI"] = METRICS["nli"].scorer("nli", options.nli)
        starts = {engine: first_score(model, engine) for engine in ENGINES}
        flops = encoder_flops(SimLLM(model, device="cpu"), candidates + references)
    clock = time.process_time if len(os.sched_getaffinity(0)) == 1 else time.perf_counter
    seconds, values, rates = measure(scorers, candidates, references, options.turns, clock)
    baseline = values["sentence-transformers"]
    result = {
        name: {
            "pairs_per_second": round(len(candidates) / seconds[name], 1),
            "ratio": round(seconds["sentence-transformers"] / seconds[name], 2),
            "largest_difference": float(np.abs(values[name] - baseline).max()),
            "spearman": float(spearmanr(values[name], baseline).statistic),
        }
        for name in seconds
    }
    for name, row in result.items():
        mode = name.split()[0]
        share = ""
        if mode in rates:
            row["share_of_matrix_rate"] = round(flops / seconds[name] / rates[mode], 3)
            share = f"   {row['share_of_matrix_rate']:.0%} of the matrix rate"
        print(f"{name:22} {row['pairs_per_second']:>9,} pairs/s   {row['ratio']:>5.2f} x   off by "
              f"{row['largest_difference']:.1e}   Spearman {row['spearman']:.5f}{share}")  # fmt: skip
    gflops = {mode: round(rate / 1e9) for mode, rate in rates.items()}
    print(f"matrix rate in GFLOP/s: {gflops}")
    print(f"seconds to the first score: {starts}")
    if options.json:
        machine.write(options.json, pairs=len(candidates), clock=clock.__name__, gflops=gflops,
                      first_score_seconds=starts, ways=result)  # fmt: skip


if __name__ == "__main__":
    main()
