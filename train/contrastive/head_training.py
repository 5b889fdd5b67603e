"""Train the meaning head of a model further; the encoder stays as it is.

    python -m train.contrastive.head_training configs/meaning-head.yaml
    python -m train.contrastive.head_training configs/meaning-head.yaml model=runs/mine/model mix=null

The initial model is usually the output of `train.contrastive`. Its encoder may first be mixed
with the encoder of an earlier model, which knows general similarity better. The head then learns to read
the mixed encoder. If the initial model has no head, a new head is trained. To resume a run that was
stopped or killed, rerun the same command.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from simllm.errors import InputError
from simllm.evaluation import contrast
from simllm.metric import SimLLM
from simllm.model import checkpoint
from simllm.perturb.summaries import lexicon
from train.contrastive.batches import hash_files
from train.contrastive.dev_criterion import DevCriterion
from train.contrastive.meaning_task import MeaningTask
from train.contrastive.weight_interpolation import interpolate_weights
from train.corpus import decontaminate
from train.runtime import run_folder, training_loop
from train.runtime.config import MeaningConfig, TrainingConfig
from train.runtime.distributed import World
from train.runtime.log import open_log, print_progress
from train.runtime.provenance import git_revision, training_card, training_provenance
from train.runtime.signals import StopRequest
from train.runtime.state import Progress
from train.runtime.training_command import run_training


@dataclass(frozen=True, kw_only=True)
class MixConfig:
    """Settings for mixing the weights of an earlier model into the initial encoder."""

    model: str  # the folder of the earlier model
    share: float  # its share of the weights, between 0 and 1

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InputError(f"share must be between 0 and 1, not {self.share}")


@dataclass(frozen=True, kw_only=True)
class HeadTrainingConfig(TrainingConfig):
    """Settings for training the meaning head alone."""

    model: str  # the model folder to start from
    mix: MixConfig | None = None
    meaning: MeaningConfig
    exclude: tuple[str, ...] = ()  # rated files; training texts that occur in them are left out
    dev: tuple[str, ...]  # rated files for the criterion that chooses the best model
    dev_comments: str  # cleaned comments, one per line, for the same criterion
    hold_out_contrast: bool  # whether to train without the deciding words of the contrast set


class HeadTask:
    """The meaning head, its loss and its evaluation, for the training loop.

    Args:
        config: The configuration of the run.
        world: The processes of the run.

    Raises:
        InputError: A model cannot be read, the two models cannot be mixed, the initial model has a meaning
            head of another shape, or a source of pairs is empty.
    """

    def __init__(self, config: HeadTrainingConfig, world: World) -> None:
        self.config = config
        self.metric = SimLLM(config.model, mode="plain", device="cpu")
        self.start = start = self.metric.checkpoint
        self.mixed_hash = ""
        if config.mix:
            earlier = checkpoint.load(Path(config.mix.model))
            self.start = start = interpolate_weights(start, earlier, config.mix.share)
            self.mixed_hash = earlier.hash
        if start.head and start.head.config != config.meaning.head:
            raise InputError(f"{config.model}: its meaning head has another shape than meaning.head")
        self.encoder = start.encoder.to(world.device).requires_grad_(False)
        self.meaning = MeaningTask(
            config.meaning,
            self.encoder,
            start.tokenizer,
            decontaminate.read_excluded(config.exclude),
            lexicon.load(contrast.deciding_word_pairs() if config.hold_out_contrast else ()),
            config.seed,
            config.precision,
            world,
            start.head,
        )
        self.model = self.metric.head = self.meaning.head
        self.metric.meaning = checkpoint.MeaningInfo(config.meaning.head)  # not calibrated
        self.dev_criterion = DevCriterion(config.dev, config.dev_comments, config.seed)

    @property
    def flops_per_token(self) -> float:
        """Approximate floating-point operations per trained token.

        These are two for each weight of the encoder's layers, and six for each weight of the head.
        """
        layers, head = self.encoder.layers.parameters(), self.model.parameters()
        return 2.0 * sum(p.numel() for p in layers) + 6.0 * sum(p.numel() for p in head)

    def format_loss(self, loss: float) -> str:
        """Format the loss of one update (optimizer step) for the progress bar."""
        return f"loss {loss:.3f}"

    def describe_texts(self, update: int) -> str:
        """Describe the texts of one update (optimizer step): the number of pairs, and the first pair."""
        first, *_ = self.meaning.draw_pairs(update)
        return f"{self.config.meaning.pairs} pairs ({first.first!r} and {first.second!r}, …)"

    def losses(self, update: int) -> Iterator[tuple[Tensor, int]]:
        """Compute this process's parts of the loss for one update (see `MeaningTask.losses`)."""
        yield from self.meaning.losses(update)

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Evaluate the model on the dev data (see `DevCriterion`); only figures of the head can change."""
        return self.dev_criterion(self.metric)


def train(config: HeadTrainingConfig, world: World, stop: StopRequest) -> Path:
    """Train the meaning head, or resume the run.

    Args:
        config: The configuration of the run.
        world: The processes of the run.
        stop: The handler of signals.

    Returns:
        The folder of the model that was best on the dev data.
    """
    out, revision = Path(config.out), git_revision()
    log = world.first_then_others(lambda: open_log(config, world))
    task = world.first_then_others(lambda: HeadTask(config, world))
    if world.is_first:
        print_progress("training")
    start = task.start

    def save_best(progress: Progress) -> None:
        facts = {
            "objective": "meaning head alone (cross entropy)",
            **training_provenance(config, progress, world, revision),
            "dev_criterion": round(-progress.best, 4),
            "start": {"hash": start.hash, **start.info.provenance},
        }
        info = replace(start.info, provenance=facts, meaning=checkpoint.MeaningInfo(config.meaning.head))
        card = training_card("The meaning head was trained last; the encoder did not change", facts)
        checkpoint.save(out / "model", task.encoder, start.tokenizer, info, card, head=task.model)

    patterns = [pattern for source in config.meaning.sources for pattern in source.patterns]
    files = hash_files([*patterns, *config.exclude, *config.dev, config.dev_comments])
    inputs = (start.hash, start.head_hash, task.mixed_hash, files)
    training_loop.train(config, task, world, stop, run_folder.identity(config, *inputs), log, save_best)
    return out / "model"


if __name__ == "__main__":
    sys.exit(run_training(HeadTrainingConfig, train, "train.contrastive.head_training", __doc__))
