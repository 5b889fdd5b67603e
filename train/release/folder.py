"""The released model folder: model, score scale, golden scores, figures, model card and logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import nn

from simllm.analysis import golden_scores
from simllm.errors import InputError
from simllm.io import output_file, reading
from simllm.io.output_folder import OutputFolder
from simllm.model import saved_model
from simllm.model.network import of_last_layer
from simllm.model.saved_model import BLOCK, SavedModel, to_blocks
from simllm.model.torch_engine import TorchEngine
from simllm.scoring import embedding
from train.contrastive.grades import GradesConfig, fit_grades, read_graded_pairs
from train.contrastive.meaning_pairs import MeaningPair
from train.release.calibrate import calibrate, calibrate_meaning, meaning_test_pairs
from train.release.card import main_figures, write_card
from train.release.measure import MeasureConfig, check_inputs, measure
from train.release.refresh import (
    CARD,
    FIGURES,
    describe_runs,
    figures_json,
    read_figures,
    read_sources,
    read_text,
    summarize_ablations,
)
from train.runtime import config as training_config
from train.runtime.config import MODEL, hide_data_root, shorten_paths


@dataclass(frozen=True, kw_only=True)
class Release:
    """The inputs of a release, and the folder to write.

    Attributes:
        runs: Folders of training runs, in the order in which they trained.
        after: The released model from which the first run started, if any; its stages come first.
        grades: A YAML file with the keys of `GradesConfig`; None: no graded output is fitted.
        notes: A Markdown file, which is appended to the model card.
        config: A YAML file with the keys of `MeasureConfig`.
        centre: Comments, one per line, whose mean embedding is shifted to about 0; None: no shift.
        calibrate: Held-out comments; None: no score scale.
        calibrate_meaning: Held-out labelled pairs for the meaning head; needs `calibrate`.
        held_out: The run of the control model.
        seeds: Runs like the last of `runs`, with other random seeds. Of all these, the run with the highest
            dev criterion is released.
        ablations: The results of `train.release.ablations`, for a table in the card.
    """

    runs: Sequence[Path]
    out: Path
    notes: Path
    config: Path
    centre: Path | None = None
    calibrate: Path | None = None
    calibrate_meaning: Path | None = None
    held_out: Path | None = None
    seeds: Sequence[Path] = ()
    ablations: Path | None = None
    after: Path | None = None
    grades: Path | None = None

    def __post_init__(self) -> None:
        if self.calibrate_meaning and not self.calibrate:
            raise InputError("--calibrate-meaning needs the comments of --calibrate")


def write_release(release: Release) -> None:
    """Write the released model folder."""
    runs = release.runs
    OutputFolder(release.out, saved_model.CONTENT).check()
    control = [release.held_out] if release.held_out else []
    OutputFolder(release.out).check_apart([*runs, *release.seeds, *control])
    config = training_config.load(MeasureConfig, release.config, [])
    for given in (release.calibrate, release.calibrate_meaning):
        if given and not given.is_file():
            raise InputError(f"{given}: no such file")
    heads = [bool(saved_model.load(run / MODEL).head) for run in (runs[-1], *release.seeds, *control)]
    check_inputs(config, any(heads))
    notes = read_text(release.notes)
    seeds = [runs[-1], *release.seeds]
    run = max(seeds, key=_dev_criterion) if release.seeds else runs[-1]
    stages = [*runs[:-1], run]
    training = describe_runs(stages, release.after)
    before = read_figures(release.out)
    ablations = summarize_ablations(release.ablations) if release.ablations else {}
    comments = [line for _, line in reading.read_lines(release.centre)] if release.centre else []
    grades = training_config.load(GradesConfig, release.grades, []) if release.grades else None
    if grades and not all(heads):
        raise InputError("--grades needs runs whose model has a meaning head")
    graded = read_graded_pairs(grades) if grades else []
    facts = {"grades": {"pairs": len(graded), **hide_data_root(asdict(grades))}} if grades else {}
    # All inputs have been read by now, because making and measuring the model takes long.
    write_model = partial(postprocess, comments=comments, graded=graded)
    # The folder is made at a temporary place, and moved when it is complete.
    with OutputFolder(release.out, saved_model.CONTENT).replacing() as candidate:
        write_model(run, candidate)
        if release.calibrate:
            calibrate(candidate, release.calibrate)
            if release.calibrate_meaning:
                pairs = meaning_test_pairs(release.calibrate, release.calibrate_meaning, config.items)
                calibrate_meaning(candidate, pairs, release.calibrate, release.calibrate_meaning.name)
        _write_provenance(candidate, facts)
        golden_scores.write_golden_scores(candidate)
        figures = measure(candidate, config, before)
        if release.held_out:
            figures["held_out"] = measure_run(release.held_out, write_model, config, figures)
        elif release.after and "held_out" in before:
            # The control model of the version before; the notes say so.
            figures["held_out"] = before["held_out"]
        if release.seeds:
            each = {
                other: figures if other == run else measure_run(other, write_model, config, figures)
                for other in seeds
            }
            figures["seeds"] = {_seed_name(other, run): main_figures(row) for other, row in each.items()}
        if ablations:
            figures["ablations"] = ablations
        for name, text in {**training, FIGURES: figures_json(figures)}.items():
            output_file.write(candidate / name, text)
        output_file.write(candidate / CARD, write_card(read_sources(candidate, notes)))


def _write_provenance(folder: Path, facts: dict[str, Any]) -> None:
    """Add facts to the provenance, shorten its paths, and leave out the stages before the last one, which
    `training.json` describes.
    """
    info = saved_model.load(folder).info
    own = {name: value for name, value in info.provenance.items() if name != "start"} | facts
    output_file.write(
        folder / saved_model.INFO, saved_model.info_json(replace(info, provenance=shorten_paths(own)))
    )


def measure_run(
    run: Path,
    write_model: Callable[[Path, Path], None],
    config: MeasureConfig,
    before: Mapping[str, Any],
) -> dict[str, Any]:
    """Measure a model that is not released, after the same postprocessing (`write_model`) as the released
    model.
    """
    with TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        write_model(run, model)
        return measure(model, config, before)


def _provenance(run: Path) -> dict[str, Any]:
    return saved_model.load(run / "model").info.provenance


def _dev_criterion(run: Path) -> float:
    try:
        return float(_provenance(run)["dev_criterion"])
    except KeyError:
        raise InputError(f"{run / 'model'}: has no dev_criterion in its provenance") from None


def _seed_name(run: Path, released: Path) -> str:
    """Return a run's name for the model card, such as "seed 1" or "seed 1 (released)"."""
    return f"seed {_provenance(run)['config']['seed']}" + (" (released)" if run == released else "")


def postprocess(run: Path, folder: Path, comments: Sequence[str], graded: Sequence[MeaningPair] = ()) -> None:
    """Round the weights of a run's model, shift its embeddings to the mean of `comments`, fit the graded
    output of its meaning head to graded pairs, and write a model folder.
    """
    model = saved_model.load(run / "model")
    save_rounded(model, folder, comments[::_SAMPLE_STEP], graded)


@torch.no_grad()
def round_to_blocks(module: nn.Module) -> None:
    """Round the matrices and embedding tables of a network in place, in blocks within a row.

    A matrix or table stays unchanged if its row length is not a multiple of 32.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding) and not part.weight.shape[1] % BLOCK:
            numbers, scales = to_blocks(part.weight.numpy(), 1)
            rounded = torch.from_numpy(numbers * scales.astype(np.float32))
            part.weight.copy_(rounded.reshape(part.weight.shape))


_SAMPLE_STEP = 20  # every 20th comment is embedded, which is enough for the mean embedding


def centre_embeddings(model: SavedModel, texts: Sequence[str]) -> None:
    """Shift the embeddings of a model, in place, so that the mean embedding of the given texts is 0."""
    tokenized = embedding.tokenize(model.tokenizer, texts, model.encoder.config.max_length, "truncate")
    embeddings = embedding.embed(TorchEngine(model.encoder), tokenized, "mean")
    last: Any = model.encoder.layers[-1]
    shift = torch.from_numpy(embeddings.mean(axis=0))
    # Because mean pooling is linear, it is enough to change the bias of the last layer norm.
    last.norm.bias.data -= shift
    if model.head:
        # The meaning head takes the shifted vectors as inputs. Its own bias undoes the shift, so that its
        # results stay the same.
        weight = of_last_layer(model.head.project.weight.data, len(shift))
        model.head.project.bias.data += weight @ shift


def save_rounded(
    model: SavedModel, folder: Path, comments: Sequence[str] = (), graded: Sequence[MeaningPair] = ()
) -> None:
    """Round the weights of a model in place to 8 bits, and write them as float16.

    The embeddings are centred on `comments`, and the graded output of the meaning head is fitted to `graded`
    pairs, if there are any.
    """
    for part in (model.encoder, model.head):
        if part:
            round_to_blocks(part)
    # After the rounding, because the mean embedding depends on the rounded weights, and grades on both.
    if comments:
        centre_embeddings(model, comments)
    head, info = model.head, model.info
    if graded:
        head = fit_grades(model, graded)
        assert info.meaning
        info = replace(info, meaning=replace(info.meaning, head=head.config))
    saved_model.save(folder, model.encoder, model.tokenizer, info, "", torch.float16, head)
