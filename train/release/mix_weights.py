"""Mix the weights of two or more models; the mixture is the initial model of a further training run.

    python -m train.release.mix_weights runs/meaning runs/mixed --start runs/distill/model --share 0.35

The command writes the model folder runs/mixed. The weights of the new encoder are
0.35 * (weights in runs/distill/model) + 0.65 * (weights in runs/meaning/model), rounded to 8 bits. The
meaning head (a network that predicts whether two texts have the same meaning) comes from runs/meaning/model.

If several models follow `--start`, they have equal parts of the share. For example, `--share 0.5` with two
models gives each of them 0.25. The mean of runs that differ only in their random seeds can be better than
each of them. Code readers (`train.code_reader`) are mixed with their heads, in half precision; then
`train.code_reader.measure --dev` calibrates the mixture.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.output_folder import OutputFolder
from simllm.model import code_model, saved_model
from simllm.model.code_model import CodeInfo
from simllm.model.saved_model import SINGLE_FILE, MeaningInfo, SavedModel
from train.release.folder import save_rounded
from train.runtime.command import make_parser, run_command
from train.runtime.config import MODEL


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.release.mix_weights", __doc__)
    parser.add_argument("run", type=Path, help="the folder of the training run")
    parser.add_argument("folder", type=Path, help="the model folder to write")
    parser.add_argument(
        "--start", required=True, type=Path, nargs="+", metavar="MODEL",
        help="the model folders that are mixed in",
    )  # fmt: skip
    parser.add_argument(
        "--share", required=True, type=float, metavar="S", help="share of their weights, from 0 to 1"
    )
    return run_command(parser, write_mixed)


def write_mixed(run: Path, folder: Path, start: Sequence[Path], share: float) -> None:
    """Mix the model of the run in `run` with the mean of the models `start`, and write a model folder.

    `start` is usually the model before this training, or the models of equal runs with other random seeds.
    """
    if not 0 <= share <= 1:
        raise InputError(f"--share {share:g}: expected 0 to 1")
    reads_code = (run / MODEL / code_model.INFO).is_file()
    OutputFolder(folder, code_model.CONTENT if reads_code else saved_model.CONTENT).check()
    OutputFolder(folder).check_apart([run, *start])
    if reads_code:
        write_mixed_reader(run / MODEL, folder, start, share)
        return
    starts = [saved_model.load(each) for each in start]
    mixed = interpolate_weights(saved_model.load(run / MODEL), starts, share)
    with OutputFolder(folder, saved_model.CONTENT).replacing() as candidate:
        save_rounded(mixed, candidate)


def write_mixed_reader(end: Path, folder: Path, start: Sequence[Path], share: float) -> None:
    """Mix code readers of one encoder of summaries; the mixture is not calibrated.

    The reader from which the training of `end` started may be one of an earlier encoder of summaries.
    """
    info, weights = code_model.read_stored(end)
    starts, hashes = [], []
    for path in start:
        other, own = code_model.read_stored(path)
        hashes.append(output_file.sha256_of(path / SINGLE_FILE)[:12])
        related = info.summaries == other.summaries or hashes[-1] == info.provenance.get("start")
        shapes = [{name: weight.shape for name, weight in each.items()} for each in (weights, own)]
        if not related or (info.fits.head, shapes[0]) != (other.fits.head, shapes[1]):
            raise InputError(f"{path}: has another shape or encoder of summaries; it cannot be mixed in")
        starts.append(own)
    mixed = {
        name: torch.from_numpy((1 - share) * weight + share * np.mean([own[name] for own in starts], axis=0))
        for name, weight in weights.items()
    }
    facts = {**info.provenance, "start_share": share, "starts": hashes}
    facts.pop("dev_criterion", None)
    mixture = CodeInfo(info.summaries, MeaningInfo(info.fits.head), provenance=facts)
    code_model.save_weights(folder, mixed, mixture, "# A mixture of code readers, to be calibrated\n")


def interpolate_weights(end: SavedModel, starts: Sequence[SavedModel], share: float) -> SavedModel:
    """Give `end` the encoder weights share * (mean of `starts`) + (1 - share) * end, and note this as
    provenance.

    See Wortsman et al., "Robust fine-tuning of zero-shot models", 2022; and for models that differ in their
    random seeds, Wortsman et al., "Model soups", 2022.
    """
    for start in starts:
        # Weights of equal shape mean nothing together if their tokens have other ids.
        if (end.encoder.config, end.tokenizer.hash) != (start.encoder.config, start.tokenizer.hash):
            raise InputError(f"the start {start.hash} has another shape or vocabulary; it cannot be mixed in")
    weights = [start.encoder.state_dict() for start in starts]
    mixed = {
        name: share * sum(each[name] for each in weights) / len(weights) + (1 - share) * tensor
        for name, tensor in end.encoder.state_dict().items()
    }
    end.encoder.load_state_dict(mixed)
    facts = {**end.info.provenance, "start_share": share, "starts": [start.hash for start in starts]}
    return replace(end, info=replace(end.info, provenance=facts))


if __name__ == "__main__":
    sys.exit(main())
