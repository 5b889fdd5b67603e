r"""Bring a model folder up to date after its weights or calibration changed: golden scores, figures, card.

    python -m train.release.refresh checkpoints/default --notes checkpoints/notes.md
    python -m train.release.refresh checkpoints/default --notes checkpoints/notes.md --card-only

The command writes the golden scores, the expected scores of fixed text pairs with which `simllm selftest`
compares new ones; it measures the model (`train.release.measure`, `--config` names the data sets) and writes
`figures.json`; and it writes the model card, README.md. With `--card-only`, it writes nothing but the card,
from the files of the folder.

After `--runs` stand the folders of the training runs, in the order in which they trained. Their logs are
added, and their facts replace those in `training.json`; the card then shows no other logs. `--held-out`
measures a control model, too. Figures of baselines are kept if neither the baselines nor the data have
changed.

The file after `--notes` is Markdown that is written by hand. It may begin with metadata for the card, such
as the licence: YAML between two lines `---`. The text above its first heading of the second level opens the
card; the rest comes after the figures.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simllm.analysis import golden_scores
from simllm.errors import InputError
from simllm.io import reading
from simllm.io.output_folder import OutputFolder
from simllm.model import saved_model
from train.release.card import CardSources, main_figures, write_card
from train.release.measure import MeasureConfig, check_inputs, measure
from train.runtime import config as training_config
from train.runtime.command import make_parser, run_command
from train.runtime.config import shorten_paths

CARD, FIGURES, TRAINING = "README.md", "figures.json", "training.json"
# Figures of other models, which a new measurement of this model leaves as they are.
_OF_OTHERS = ("held_out", "seeds", "ablations")
_KEPT = ("config", "pairs", "corpus_counts", "versions")  # groups of facts about a stage


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.release.refresh", __doc__)
    parser.add_argument("model", type=Path, help="a model folder that train.release made")
    parser.add_argument("--notes", type=Path, required=True, help="Markdown that is written by hand")
    parser.add_argument("--card-only", action="store_true", help="measure nothing")
    parser.add_argument("--config", type=Path, default=Path("configs/measure.yaml"), help="%(default)s")
    parser.add_argument("--held-out", type=Path, metavar="MODEL", help="model folder of a control model")
    parser.add_argument("--ablations", type=Path, metavar="FILE", help="output of train.release.ablations")
    parser.add_argument("--runs", nargs="+", type=Path, default=[], metavar="RUN", help="training runs")
    return run_command(parser, refresh)


def refresh(
    model: Path,
    notes: Path,
    card_only: bool = False,
    config: Path = Path("configs/measure.yaml"),
    held_out: Path | None = None,
    ablations: Path | None = None,
    runs: Sequence[Path] = (),
) -> None:
    """Write the golden scores, figures, logs and card of a model folder anew."""
    folder = OutputFolder(model, saved_model.CONTENT)
    folder.check_addition(CARD)
    sets = training_config.load(MeasureConfig, config, [])
    if card_only and (held_out or ablations):
        raise InputError("--held-out and --ablations change the figures, which --card-only does not allow")
    text, added = read_text(notes), describe_runs(runs) if runs else {}
    if not card_only:
        check_inputs(sets)
        before = read_figures(model)
        others = {name: before[name] for name in _OF_OTHERS if name in before}
        if ablations:
            others["ablations"] = summarize_ablations(ablations)
        # All inputs are read before the measurement, which takes long.
        if not runs:
            read_stages(model)
        if held_out:
            saved_model.load(held_out)
        figures = measure(model, sets, before) | others
        if held_out:
            figures["held_out"] = measure(held_out, sets, figures)
        golden_scores.write_golden_scores(model)
        added[FIGURES] = figures_json(figures)
    for name, content in added.items():
        folder.write(name, content)
    folder.write(CARD, write_card(read_sources(model, text)))


def summarize_ablations(file: Path) -> dict[str, dict[str, float]]:
    """Return the main figures of each variant in the output of `train.release.ablations`."""
    rows = _read_rows(file, {"variant", "spearman", "contrast"})
    return {row["variant"]: main_figures(row) for row in rows}


def read_stages(folder: Path) -> list[dict[str, Any]]:
    """Read the facts about the training of a released model (see `describe_runs`)."""
    return _read_rows(folder / TRAINING, {"name", "log"})


def _read_rows(file: Path, keys: set[str]) -> list[dict[str, Any]]:
    """Read a JSON list of objects that have these keys."""
    try:
        rows = json.loads(read_text(file))
    except ValueError:
        rows = None
    if isinstance(rows, list) and all(isinstance(row, dict) and keys <= row.keys() for row in rows):
        return rows
    raise InputError(f"{file}: expected a JSON list of objects with {', '.join(sorted(keys))}")


def read_figures(model: Path) -> dict[str, Any]:
    """Read the figures in a model folder; none if it has no such file."""
    return reading.read_json(model / FIGURES) if (model / FIGURES).exists() else {}


def figures_json(figures: dict[str, Any]) -> str:
    """Format figures as the text of their file, with six decimals."""
    rounded = json.loads(json.dumps(figures), parse_float=lambda number: round(float(number), 6))
    return json.dumps(rounded, indent=1) + "\n"


def read_text(file: Path) -> str:
    """Read a text file whole."""
    return "".join(line + "\n" for _, line in reading.read_lines(file))


def describe_runs(runs: Sequence[Path], after: Path | None = None) -> dict[str, str]:
    """Return the logs of runs and `training.json`, by the names of the files in the model folder.

    Each stage in `training.json` has the "name" of its run, the name of its "log", and its provenance, with
    short paths and without settings that are null, false or {}. What came before the stage is left out,
    because other stages describe it. `after` is a released model, whose stages come first.
    """
    stages = read_stages(after) if after else []
    files = {stage["log"]: read_text(after / stage["log"]) for stage in stages} if after else {}
    for number, folder in enumerate(runs, len(stages) + 1):
        facts = saved_model.load(folder / "model").info.provenance
        if not {"objective", "config"} <= set(facts):
            raise InputError(f"{folder / 'model'}: has no objective and config in its provenance")
        facts = {name: value for name, value in facts.items() if not isinstance(value, dict) or name in _KEPT}
        log = f"log-{number}-{folder.name}.jsonl"
        stages.append({"name": folder.name, "log": log, **facts})
        files[log] = read_text(folder / "log.jsonl")
    # One stage on each line.
    lines = (json.dumps(_without_unset(stage), separators=(",", ":")) for stage in shorten_paths(stages))
    files[TRAINING] = "[\n" + ",\n".join(lines) + "\n]\n"
    return files


def _without_unset(value: Any) -> Any:
    """Leave out settings that are null, false or {}."""
    if isinstance(value, dict):
        return {
            name: _without_unset(each)
            for name, each in value.items()
            if each is not None and each is not False and each != {}
        }
    return [_without_unset(each) for each in value] if isinstance(value, list) else value


def read_sources(model: Path, notes: str) -> CardSources:
    """Read what the card of a model folder is made from."""
    training = read_stages(model)
    logs = {stage["log"]: [row for _, row in reading.objects(model / stage["log"])] for stage in training}
    return CardSources(model, reading.read_json(model / FIGURES), training, logs, notes)


if __name__ == "__main__":
    sys.exit(main())
