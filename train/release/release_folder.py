"""The released model folder: model, score scale, golden scores, figures, card and logs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from simllm.analysis import golden_scores
from simllm.errors import InputError
from simllm.io import files, folders
from simllm.model import checkpoint
from train.release import card
from train.release.calibrate import calibrate, calibrate_meaning
from train.release.measure import MeasureConfig, measure
from train.release.postprocess import postprocess
from train.runtime import config as configs

_FACTS: tuple[str, ...] = ("updates", "tokens", "epochs", "seconds", "test_perplexity", "dev_criterion")
_FACTS += ("hardware", "date", "git_revision")


@dataclass(frozen=True, kw_only=True)
class Release:
    """The inputs of a release, and the folder to write.

    Attributes:
        runs: Folders of training runs, in the order in which they trained.
        out: The model folder to make.
        notes: Markdown for the end of the card.
        config: A YAML file with a `MeasureConfig`.
        centre: Comments, one per line; embeddings are shifted so that their mean is 0.
        calibrate: Held-out comments and rated pairs for the score scale.
        calibrate_meaning: Held-out labelled pairs for the probability of the meaning head.
        start_share: Share of the first run's weights in the released weights, from 0 to below 1.
        held_out: A run like the last one, without the deciding words of the contrast set.
        seeds: Runs like the last one with other seeds; the best of them and the last one is released.
        ablations: Output of `train.release.ablations`.
    """

    runs: Sequence[Path]
    out: Path
    notes: Path
    config: Path
    centre: Path | None = None
    calibrate: Sequence[Path] | None = None
    calibrate_meaning: Path | None = None
    start_share: float = 0.0
    held_out: Path | None = None
    seeds: Sequence[Path] = ()
    ablations: Path | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.start_share < 1 or (self.start_share and len(self.runs) < 2):
            raise InputError(
                f"--start-share {self.start_share:g}: expected 0 to below 1, and two or more runs"
            )


def write_release(release: Release) -> None:
    """Make the model folder in a temporary folder, and move it to its place at the end.

    Raises:
        InputError: An input is missing or wrong, or simllm may not replace the folder.
    """
    runs, share = release.runs, release.start_share
    folders.check(release.out)
    folders.check_apart(
        release.out, [*runs, *release.seeds, *([release.held_out] if release.held_out else [])]
    )
    config = configs.load(MeasureConfig, release.config, [])
    notes = "\n".join(line for _, line in files.lines(release.notes))
    seeds = [runs[-1], *release.seeds]
    run = max(seeds, key=_dev_criterion) if release.seeds else runs[-1]
    stages = [*runs[:-1], run]
    logs = {f"log-{n}-{stage.name}.jsonl": _text(stage / "log.jsonl") for n, stage in enumerate(stages, 1)}
    ablations = json.loads(_text(release.ablations)) if release.ablations else []
    training = describe_training(stages)
    if share:
        training.append(
            f"The released weights are {1 - share:g} of the last run's and {share:g} of the first's."
        )
    comments = [line for _, line in files.lines(release.centre)] if release.centre else []
    write_model = partial(postprocess, start=runs[0], share=share, comments=comments)
    with folders.replacing(release.out) as candidate:
        write_model(run, candidate)
        if release.calibrate:
            calibrate(candidate, *release.calibrate)
            if release.calibrate_meaning:
                calibrate_meaning(candidate, release.calibrate[0], release.calibrate_meaning)
        golden_scores.write_golden_scores(candidate)
        for name, log in logs.items():
            files.write(candidate / name, log)
        figures = measure(candidate, config)
        if release.held_out:
            figures["held_out"] = measure_run(release.held_out, write_model, config)
        files.write(candidate / "figures.json", json.dumps(figures, indent=1) + "\n")
        parts = [describe_model(candidate), *training, *card.figure_sections(figures)]
        if release.seeds:
            each = {
                other: figures if other == run else measure_run(other, write_model, config) for other in seeds
            }
            parts += card.seeds_section({_seed_name(other, run): row for other, row in each.items()})
        if ablations:
            parts += card.ablations_section(ablations)
        files.write(candidate / "README.md", "\n\n".join([*parts, notes]) + "\n")


def measure_run(
    run: Path, write_model: Callable[[Path, Path], None], config: MeasureConfig
) -> dict[str, Any]:
    """Measure another run like the released model, in a temporary folder.

    Args:
        run: The folder of the training run.
        write_model: Writes the released model of a run into a folder.
        config: The sets to measure on.
    """
    with TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        write_model(run, model)
        return {"updates": checkpoint.load(model).info.provenance["updates"], **measure(model, config)}


def _provenance(run: Path) -> dict[str, Any]:
    return checkpoint.load(run / "model").info.provenance


def _dev_criterion(run: Path) -> float:
    """Return the dev criterion of the best model of a run; higher is better."""
    try:
        return float(_provenance(run)["dev_criterion"])
    except KeyError:
        raise InputError(f"{run / 'model'}: has no dev_criterion in its provenance") from None


def _seed_name(run: Path, released: Path) -> str:
    """Return the name of a run in the card: its seed."""
    return f"seed {_provenance(run)['config']['seed']}" + (" (released)" if run == released else "")


def _text(file: Path) -> str:
    return "".join(line + "\n" for _, line in files.lines(file))


def describe_model(model: Path) -> str:
    """Return the beginning of the card, which describes the model."""
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


def describe_training(runs: Sequence[Path]) -> list[str]:
    """Return the section of the card about the training runs."""
    parts = ["## Training"]
    for number, folder in enumerate(runs, 1):
        stage = checkpoint.load(folder / "model").info.provenance
        if not {"objective", "config"} <= set(stage):
            raise InputError(f"{folder / 'model'}: has no objective and config in its provenance")
        rows = [[name.replace("_", " "), f"{stage[name]}"] for name in _FACTS if name in stage]
        for name in ("corpus_counts", "pairs"):
            counts = stage.get(name, {})
            rows += [
                [f"{name.split('_')[0]}: {Path(key).name}", f"{count:,}"] for key, count in counts.items()
            ]
        rows.append(["configuration", f"`{json.dumps(stage['config'])}`"])
        parts += [f"### {number}. {stage['objective']}", card.markdown_table(["", ""], rows)]
    return [*parts, "The logs are beside this file."]
