"""Distil a student (a small sentence encoder) from its teachers (larger sentence encoders).

    python -m train.distill configs/distill.yaml 'teachers=[teachers/all-mpnet-base-v2]'
    torchrun --nproc_per_node 4 -m train.distill configs/distill.yaml

The steps are: collect texts, learn the student's vocabulary, compute the teachers' embeddings of the texts,
and train the student. Each step stores its result in the run's folder. To resume a run that was stopped or
killed, rerun the same command; finished steps are not repeated, and the number of processes may change. Exit
status: 0 done, 1 diverged, 2 bad input, 75 or 130 stopped by a signal.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

from simllm.metric import SimLLM
from simllm.model import saved_model
from simllm.model.tokenizer import Tokenizer
from train.distill import student, teachers, texts
from train.distill import targets as pca_targets
from train.distill.config import DistillConfig
from train.distill.task import DistillationTask
from train.runtime import loop, training_run
from train.runtime.checkpoint import Progress
from train.runtime.distributed import World
from train.runtime.log import open_log, print_progress
from train.runtime.provenance import git_revision, training_card, training_provenance
from train.runtime.signals import StopRequest
from train.runtime.training_run import run_training
from train.tokens import vocabulary


def distil(config: DistillConfig, world: World, stop: StopRequest) -> Path:
    """Distil a student, or resume the run, and return the model folder that is best on the dev data."""
    out, revision = Path(config.out), git_revision()
    log = world.first_then_others(lambda: open_log(config, world))
    task, facts = prepare(config, world)
    if world.is_first:
        print_progress("training")
    start = task.metric.model

    def save_best(progress: Progress) -> None:
        provenance = {
            "objective": "distillation",
            **facts,
            **training_provenance(config, progress, world, revision),
            "dev_criterion": round(-progress.best, 4),
        }
        info = saved_model.ModelInfo(provenance=provenance)
        card = training_card("Distilled from larger sentence encoders", provenance)
        saved_model.save(out / "model", task.model, start.tokenizer, info, card, keep_edits=False)

    identity = training_run.identity(config, start.hash, start.tokenizer.hash, str(facts))
    loop.train(config, task, world, stop, identity, log, save_best)
    return out / "model"


def prepare(config: DistillConfig, world: World) -> tuple[DistillationTask, dict[str, object]]:
    """Prepare texts, vocabulary, teachers' embeddings and student, and load what the run folder has already.

    Returns the task, and facts about texts and teachers for the provenance of the trained model.
    """
    out = Path(config.out)
    tell = print_progress if world.is_first else lambda line: None
    tell("texts")
    stored = texts.collect_texts(
        config,
        out,
        world,
        exclude=config.exclude,
        hold_out_contrast=config.hold_out_contrast,
        seed=config.seed,
    )

    tell("vocabulary")
    size = config.model.vocab_size
    tokenizer = world.first_then_others(
        lambda: vocabulary.load_or_learn(
            out / "vocabulary" / f"{stored.sha256[:12]}-{size}",
            stored.folder / texts.LINES,
            size,
        )
    )

    tell("embeddings of the teachers")
    width = config.model.hidden_size
    targets = pca_targets.compute_targets(config, stored, width, out, world, config.seed)
    metric = world.first_then_others(lambda: load_or_make_student(config, tokenizer, world))
    task = world.in_all_processes(lambda: DistillationTask(config, metric, targets, world))
    return task, targets.facts


def load_or_make_student(config: DistillConfig, tokenizer: Tokenizer, world: World) -> SimLLM:
    """Load the untrained student from the run folder; if there is none, make and save it."""
    teacher = teachers.identity(Path(config.start.teacher)) if config.start else None
    layers = config.start.layers if config.start else ()
    # Everything that decides the untrained weights is in the folder's name: a changed setting makes a new
    # one.
    choice = training_run.short_hash(asdict(config.model), teacher, layers, tokenizer.hash, config.seed)
    folder = Path(config.out) / "start" / choice
    if world.is_first and not folder.is_dir():
        untrained = student.make_student(config.model, tokenizer, config.start, config.seed)
        saved_model.save(
            folder, untrained, tokenizer, saved_model.ModelInfo(), "# A student before training\n"
        )
    return SimLLM(folder, mode="plain", device="cpu")


if __name__ == "__main__":
    sys.exit(run_training(DistillConfig, distil, "train.distill", __doc__))
