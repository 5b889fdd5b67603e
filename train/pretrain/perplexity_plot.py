"""Draw the perplexity over the updates (optimizer steps) of pretraining runs, from the logs of the runs.

    python -m train.pretrain.perplexity_plot runs/mini/log.jsonl -o perplexity.svg
    python -m train.pretrain.perplexity_plot runs/*/log.jsonl -o perplexity.png

The figure is like Fig. 4 of the SimLLM paper (Jin et al., 2024).
"""

from __future__ import annotations

import io
import math
import sys
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import output_file, reading
from simllm.io.packages import missing_package
from train.runtime.command import make_parser, run_command


def compute_perplexity(loss: float) -> float:
    """Compute the perplexity from the mean loss in nats."""
    # exp(710) overflows, which happens when the training diverges.
    return math.exp(min(loss, 700.0))


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.pretrain.perplexity_plot", __doc__)
    parser.add_argument("logs", nargs="+", type=Path, help="log.jsonl of a pretraining run")
    parser.add_argument("-o", "--output", type=Path, required=True, help="by its suffix: svg, png, pdf")
    return run_command(parser, _draw, overwrite=True)


def _draw(logs: list[Path], output: Path, overwrite: bool) -> None:
    output_file.check_output(output, overwrite, logs)
    draw(logs, output)


def draw(logs: list[Path], output: Path) -> None:
    """Draw the training and test perplexity of the runs with these logs; the suffix of `output` is its
    format.
    """
    try:
        # Before matplotlib, whose messages about caches and fonts this module keeps off the terminal.
        from simllm.io.svg_figure import Figure, style

        from matplotlib.ticker import LogLocator, ScalarFormatter  # isort: skip
    except ImportError:
        raise InputError(missing_package("matplotlib", "train")) from None
    drawn = io.BytesIO()
    with style(10):
        figure = Figure(figsize=(6.4, 4), layout="constrained")
        axes = figure.subplots()
        for number, log in enumerate(logs):
            updates, trained, tested = _read(log)
            name, color = log.parent.name or log.stem, f"C{number}"
            axes.plot(updates, tested, color=color, label=f"{name}, test")
            axes.plot(updates, trained, color=color, linewidth=0.8, alpha=0.5, label=f"{name}, training")
            best = min(range(len(updates)), key=lambda i: math.inf if math.isnan(tested[i]) else tested[i])
            axes.plot(updates[best], tested[best], "o", color=color, markersize=4)
            axes.text(updates[best], tested[best] * 1.01, f"{tested[best]:.1f} ", ha="right", fontsize=8)
        axes.set(xlabel="updates", ylabel="perplexity", yscale="log", xlim=(0, None))
        axes.yaxis.set_major_locator(LogLocator(10, (1, 2, 5)))
        axes.yaxis.set_major_formatter(ScalarFormatter())
        axes.yaxis.set_minor_locator(LogLocator(10, ()))
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        try:
            figure.savefig(drawn, dpi=160, format=output.suffix[1:])
        except ValueError as error:  # an unknown suffix
            raise InputError(f"{output}: cannot be drawn ({error})") from None
    output_file.write(output, drawn.getvalue())


def _read(log: Path) -> tuple[list[float], list[float], list[float]]:
    """Read updates, training and test perplexities from a log; NaN stands for a missing value."""
    rows: list[dict[str, Any]] = [row for _, row in reading.objects(log)]
    if not rows or any(not {"update", "train_loss", "test_perplexity"} <= row.keys() for row in rows):
        raise InputError(
            f"{log}: not the log of a pretraining run; expected update, train_loss, test_perplexity"
        )
    try:
        updates, losses, tested = (
            [math.nan if row[key] is None else float(row[key]) for row in rows]
            for key in ("update", "train_loss", "test_perplexity")
        )
    except (TypeError, ValueError):
        raise InputError(f"{log}: expected numbers under update, train_loss, test_perplexity") from None
    return updates, [compute_perplexity(loss) for loss in losses], tested


if __name__ == "__main__":
    sys.exit(main())
