"""`simllm selftest`: check that scores are correct on this machine, and measure the speed of scoring."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from simllm.cli.shared_options import CommonOptions
from simllm.errors import InputError
from simllm.io import output_file, packages, tables
from simllm.io.tables import FORMATS as FORMATS

if TYPE_CHECKING:
    from simllm.metric import SimLLM
    from simllm.scoring.code import CodeReader

EXAMPLES = """example:
  simllm selftest
"""
# Largest allowed difference from a golden score, by mode and by what is scored. `fits` depends on the small
# errors of fast mode more than a cosine does.
TOLERANCE = {
    ("exact", "summaries"): 1e-5,
    ("exact", "code"): 1e-5,
    ("fast", "summaries"): 0.01,
    ("fast", "code"): 0.05,
}
_TEXTS = 500
# About 100 tokens.
_FUNCTION = """int total{0}(List<Item> items) {{
    int sum = 0;
    for (Item item : items) {{
        if (item.price() > limit && !item.isHidden()) {{ sum += item.price() * item.count() + {0}; }}
        else if (item.count() == 0) {{ throw new IllegalStateException("no items left in " + name); }}
        log.debug("added item {{}} of list {{}} to sum {{}}", item.name(), items.size(), sum);
    }}
    return sum;
}}"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm selftest`."""

    model: str | None = None


def run(options: Options) -> None:
    """Run `simllm selftest`: compare scores with the golden scores of the model folder, and measure the
    speed; the same for the model that reads code, if it belongs to this model.

    A difference above the tolerance is an error after the table is written.
    """
    output_file.check_output(options.output, options.overwrite)
    from simllm.analysis import golden_scores
    from simllm.metric import SimLLM
    from simllm.model import code_model
    from simllm.model.saved_model import default_model

    folder = Path(options.model or default_model())
    rows, wrong = [], []
    for (mode, scored), tolerance in TOLERANCE.items():
        if mode != "exact" and not packages.is_installed("torch"):
            continue
        metric = SimLLM(folder, mode=mode)
        scorer: SimLLM | CodeReader = metric
        own = folder
        if scored == "code":
            if not (metric.code_reader.model and (packaged := code_model.packaged())):
                continue
            scorer, own = metric.code_reader, packaged
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some golden pairs are empty or too long on purpose
            off = golden_scores.largest_difference(scorer, own)
        right = off <= tolerance  # false for NaN
        rows.append((mode, scored, off, tolerance, "right" if right else "WRONG", _measure_speed(scorer)))
        wrong += [] if right else [f"scores of mode {mode} differ from the golden ones of {own}"]
    summary = {
        "pairs": len(golden_scores.PAIRS),
        "pairs with code": len(golden_scores.CODE_PAIRS) if any(row[1] == "code" for row in rows) else 0,
        "device": str(metric.engine.device),
        "threads": metric.engine.threads,
        "signature": SimLLM(folder).signature,
    }
    columns = ("mode", "scored", "largest difference", "tolerance", "scores", "pairs/s")
    tables.write(tables.Table(columns, rows, summary), options.format, options.output)
    if wrong:
        raise InputError("; ".join(wrong))


def _measure_speed(scorer: SimLLM | CodeReader) -> int:
    """Return how many pairs of summaries, or of a function of 100 tokens and its summary, take a second."""
    from simllm.scoring.code import CodePair, CodeReader

    texts = [f"returns the value number {i} of the list, or nothing if it has none" for i in range(_TEXTS)]
    pairs = [CodePair(_FUNCTION.format(i), text, "java") for i, text in enumerate(texts[::2])]

    def score(number: int) -> None:
        if isinstance(scorer, CodeReader):
            scorer.score(pairs[:number])
        else:
            scorer.embed(texts[: 2 * number])  # a pair has two texts

    # Warm-up: the first call allocates memory and prepares kernels.
    score(32)
    started = time.perf_counter()
    score(len(pairs))
    return round(len(pairs) / (time.perf_counter() - started))
