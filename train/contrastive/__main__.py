"""Train a model so that texts with the same meaning get similar embeddings, and other texts do not.

    python -m train.contrastive configs/contrastive.yaml
    python -m train.contrastive configs/contrastive.yaml model=runs/mine/model out=runs/mine-tuned
    torchrun --nproc_per_node 4 -m train.contrastive configs/contrastive.yaml

The run starts from a model folder and writes another one. To resume a run that was stopped or
killed, rerun the same command; the number of processes may change.
"""

from __future__ import annotations

import sys
from pathlib import Path

from simllm.model import saved_model
from train.contrastive.batches import hash_inputs
from train.contrastive.config import ContrastiveConfig
from train.contrastive.meaning_task import fits
from train.contrastive.task import ContrastiveTask
from train.distill.targets import Targets, compute_targets
from train.distill.texts import collect_texts
from train.runtime import loop, training_run
from train.runtime.checkpoint import Progress
from train.runtime.config import MODEL, hide_data_root
from train.runtime.distributed import World
from train.runtime.log import open_log, print_progress
from train.runtime.provenance import git_revision, training_card, training_provenance
from train.runtime.signals import StopRequest
from train.runtime.training_run import run_training


def describe_objective(config: ContrastiveConfig) -> str:
    """List the trained losses and model parts for the model card, such as "contrastive (InfoNCE), meaning
    head".
    """
    if config.head_only:
        return "meaning head"
    losses = {"InfoNCE": config.info_nce_weight, "triplets": config.triplet_weight}
    parts = {
        f"contrastive ({', '.join(name for name, weight in losses.items() if weight)})": any(losses.values()),
        "imitation of larger encoders": config.imitation,
        "language modelling": config.language_model,
        "meaning head": config.meaning,
    }
    return ", ".join(name for name, used in parts.items() if used)


def load_or_compute_targets(config: ContrastiveConfig, world: World) -> Targets:
    """Compute the embeddings to imitate, or load those that the run folder has already."""
    assert config.imitation
    out = Path(config.out)
    stored = collect_texts(
        config.imitation,
        out,
        world,
        exclude=config.exclude,
        hold_out_contrast=config.hold_out_contrast,
        seed=config.seed,
    )
    width = world.first_then_others(lambda: saved_model.load(config.model).encoder.config.hidden_size)
    return compute_targets(config.imitation, stored, width, out, world, config.seed)


def train(config: ContrastiveConfig, world: World, stop: StopRequest) -> Path:
    """Train a model, or resume the run, and return the folder of the model that was best on the dev data."""
    out, revision = Path(config.out), git_revision()
    log = world.first_then_others(lambda: open_log(config, world))
    targets = load_or_compute_targets(config, world) if config.imitation else None
    task = world.in_all_processes(lambda: ContrastiveTask(config, world, targets))
    # The task changes the weights of this model, but not its hash, tokenizer and provenance.
    start = task.metric.model
    if world.is_first:
        for source in task.batches.positives:
            print_progress(f"  {len(source):,} pairs from {source.config.source}")
        head = task.head_start.head
        if task.meaning and head and not fits(head.config, task.meaning.head.config):
            print_progress("  the start model's meaning head has another shape; the new one starts at random")
        if start.head and not task.meaning:
            print_progress("warning: no `meaning` is configured: the start model's meaning head is left out")
        print_progress("training")

    def save_model(folder: Path, progress: Progress, criterion: float) -> None:
        facts = {
            "objective": describe_objective(config),
            "pairs": {
                f"{number}. {hide_data_root(source.config.source)}": len(source)
                for number, source in enumerate(task.batches.positives, 1)
            },
            **(targets.facts if targets else {}),
            **training_provenance(config, progress, world, revision),
            "dev_criterion": round(-criterion, 4),
            "start": {"hash": start.hash, **start.info.provenance},
            **({"head_start": task.head_start.head_hash} if task.head_start is not start else {}),
        }
        meaning = saved_model.MeaningInfo(config.meaning.head) if config.meaning else None
        info = saved_model.ModelInfo(start.info.pooling, start.info.similarity, facts, meaning=meaning)
        card = training_card("Trained on pairs of texts with the same meaning", facts)
        head = task.meaning.head if task.meaning else None
        saved_model.save(folder, task.encoder, start.tokenizer, info, card, head=head, keep_edits=False)

    # All that decides the batches and the initial weights: a run is resumed only with the same inputs.
    inputs = [
        start.hash + task.head_start.head_hash,
        start.tokenizer.hash,
        start.info.pooling,
        hash_inputs(config),
    ]
    inputs += [str(targets.facts)] if targets else []
    loop.train(config, task, world, stop, training_run.identity(config, *inputs), log, save_model)
    return out / MODEL


if __name__ == "__main__":
    sys.exit(run_training(ContrastiveConfig, train, "train.contrastive", __doc__))
