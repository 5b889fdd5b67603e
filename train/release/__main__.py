"""Make the default model: half-precision weights, training logs, and a card with measured figures.

    python -m train.release runs/mini runs/contrastive --out checkpoints/default \
        --notes checkpoints/notes.md --centre runs/mini/corpus/test.txt

The runs are given in the order in which they trained; the last one's model is released, or of it and those of
other `--seeds` the one that agreed best on dev, with a `--start-share` of the first one's weights. What
is measured stands in configs/measure.yaml, or in another file after `--config`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from simllm.errors import InputError
from simllm.io import files, folders
from simllm.model import checkpoint
from train.release import card
from train.release.measure import MeasureConfig, measure
from train.release.postprocess import finish
from train.runtime import config as configs
from train.runtime.tool_command import run_tool

_FACTS: tuple[str, ...] = ("updates", "tokens", "epochs", "seconds", "test_perplexity", "dev_criterion")
_FACTS += ("hardware", "date", "git_revision")


def main() -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.release",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+", type=Path, help="folders of training runs")
    parser.add_argument("--out", required=True, type=Path, help="the model folder to make")
    parser.add_argument("--notes", required=True, type=Path, help="Markdown that the card ends with")
    parser.add_argument("--config", type=Path, default=Path("configs/measure.yaml"), help="%(default)s")
    parser.add_argument("--centre", type=Path, help="comments, one a line, whose embeddings' mean becomes 0")
    parser.add_argument(
        "--start-share", type=float, default=0.0, metavar="S",
        help="of the released weights, this share is the first run's; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--held-out", type=Path, help="a run like the last that learned nothing of the contrast set's words"
    )
    parser.add_argument("--seeds", nargs="*", default=[], type=Path, help="runs like the last, other seeds")
    parser.add_argument("--ablations", type=Path, help="what train.release.ablations wrote")
    options = parser.parse_args()
    return run_tool(lambda: release(options))


def release(options: argparse.Namespace) -> None:
    """Make the model folder in a temporary place, measure it there, and put it in place last."""
    runs, out = options.runs, options.out
    folders.check(out)
    folders.check_apart(out, [*runs, *options.seeds, *([options.held_out] if options.held_out else [])])
    config = configs.load(MeasureConfig, options.config, [])
    notes = "\n".join(line for _, line in files.lines(options.notes))
    seeds = [runs[-1], *options.seeds]
    run = max(seeds, key=_agreed) if options.seeds else runs[-1]
    told = [*runs[:-1], run]
    logs = {f"log-{n}-{folder.name}.jsonl": _text(folder / "log.jsonl") for n, folder in enumerate(told, 1)}
    ablations = json.loads(_text(options.ablations)) if options.ablations else []
    share = options.start_share
    if not 0 <= share < 1 or (share and len(runs) < 2):
        raise InputError(
            f"--start-share {share:g}: expected a number from 0 to below 1, and two runs or more"
        )
    training = stages(told)
    if share:
        training.append(
            f"The released weights are {1 - share:g} of the last run's and {share:g} of the first's."
        )
    comments = [line for _, line in files.lines(options.centre)] if options.centre else []
    finished = partial(finish, start=runs[0], share=share, comments=comments)
    with folders.replacing(out) as candidate:
        finished(run, candidate)
        for name, log in logs.items():
            files.write(candidate / name, log)
        figures = measure(candidate, config)
        if options.held_out:
            figures["held_out"] = measured(options.held_out, finished, config)
        files.write(candidate / "figures.json", json.dumps(figures, indent=1) + "\n")
        parts = [head(candidate), *training, *card.tables(figures)]
        if options.seeds:
            each = {other: figures if other == run else measured(other, finished, config) for other in seeds}
            parts += card.seeds({_name(other, run): row for other, row in each.items()})
        if ablations:
            parts += card.ablations(ablations)
        files.write(candidate / "README.md", "\n\n".join([*parts, notes]) + "\n")


def measured(run: Path, finished: Callable[[Path, Path], None], config: MeasureConfig) -> dict[str, Any]:
    """The figures of the model that another run would be released as."""
    with TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        finished(run, model)
        return {"updates": checkpoint.load(model).info.provenance["updates"], **measure(model, config)}


def _provenance(run: Path) -> dict[str, Any]:
    return checkpoint.load(run / "model").info.provenance


def _agreed(run: Path) -> float:
    """How far it agreed on dev."""
    try:
        return float(_provenance(run)["dev_criterion"])
    except KeyError:
        raise InputError(f"{run / 'model'}: does not say how far it agreed on dev") from None


def _name(run: Path, released: Path) -> str:
    return f"seed {_provenance(run)['config']['seed']}" + (" (released)" if run == released else "")


def _text(file: Path) -> str:
    return "".join(line + "\n" for _, line in files.lines(file))


def head(model: Path) -> str:
    """What the model is."""
    loaded = checkpoint.load(model)
    config = loaded.encoder.config
    parameters = sum(p.numel() for p in loaded.encoder.parameters())
    return (
        "---\nlibrary_name: simllm\ntags: [sentence-similarity, code-summarization]\n---\n\n"
        "# The default model of simllm\n\n"
        f"{config.num_hidden_layers} layers of {config.hidden_size}, {config.vocab_size:,} tokens, "
        f"{parameters / 1e6:.1f}M parameters, stored as float16; longest input {config.max_length} tokens. "
        f"Model hash {loaded.hash}, tokenizer hash {loaded.tokenizer.hash}."
    )


def stages(runs: list[Path]) -> list[str]:
    """How it was trained: what a reader of the card wants to know of each run."""
    parts = ["## Training"]
    for number, folder in enumerate(runs, 1):
        stage = checkpoint.load(folder / "model").info.provenance
        if not {"objective", "config"} <= set(stage):
            raise InputError(f"{folder / 'model'}: does not say how it was trained")
        rows = [[name.replace("_", " "), f"{stage[name]}"] for name in _FACTS if name in stage]
        for name in ("corpus_counts", "pairs"):
            counts = stage.get(name, {})
            rows += [
                [f"{name.split('_')[0]}: {Path(key).name}", f"{count:,}"] for key, count in counts.items()
            ]
        rows.append(["configuration", f"`{json.dumps(stage['config'])}`"])
        parts += [f"### {number}. {stage['objective']}", card.table(["", ""], rows)]
    return [*parts, "The logs are beside this file."]


if __name__ == "__main__":
    sys.exit(main())
