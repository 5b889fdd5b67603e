"""`simllm selftest`: check that scores are correct on this machine, and measure the speed of scoring."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from simllm.cli.shared_options import CommonOptions
from simllm.errors import InputError
from simllm.io import output_file, packages, tables
from simllm.io.tables import FORMATS as FORMATS

EXAMPLES = """example:
  simllm selftest
"""
TOLERANCE = {"exact": 1e-5, "fast": 0.01}  # largest allowed difference from a golden score, in each mode
_TEXTS = 500


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm selftest`."""

    model: str | None = None


def run(options: Options) -> None:
    """Run `simllm selftest`: compare scores with the golden scores of the model folder, and measure the
    speed.

    A difference above the tolerance is an error after the table is written.
    """
    output_file.check_output(options.output, options.overwrite)
    from simllm.analysis import golden_scores
    from simllm.metric import SimLLM
    from simllm.model.saved_model import default_model

    folder = Path(options.model or default_model())
    rows, wrong = [], []
    texts = [f"returns the value number {i} of the list, or nothing if it has none" for i in range(_TEXTS)]
    for mode, tolerance in TOLERANCE.items():
        if mode != "exact" and not packages.is_installed("torch"):
            continue
        metric = SimLLM(folder, mode=mode)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some golden pairs are empty or too long on purpose
            off = golden_scores.largest_difference(metric, folder)
        # Warm-up: the first call allocates memory and prepares kernels.
        metric.embed(texts[:64])
        started = time.perf_counter()
        metric.embed(texts)
        # A pair has two texts.
        speed = len(texts) / 2 / (time.perf_counter() - started)
        right = off <= tolerance  # false for NaN
        rows.append((mode, off, tolerance, "right" if right else "WRONG", round(speed)))
        wrong += [] if right else [mode]
    summary = {
        "pairs": len(golden_scores.PAIRS),
        "device": str(metric.engine.device),
        "threads": metric.engine.threads,
        "signature": SimLLM(folder).signature,
    }
    columns = ("mode", "largest difference", "tolerance", "scores", "pairs/s")
    tables.write(tables.Table(columns, rows, summary), options.format, options.output)
    if wrong:
        raise InputError(f"scores of mode {', '.join(wrong)} differ from the golden ones of {folder}")
