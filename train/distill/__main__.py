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

import torch
from tokenizers import Tokenizer as Backend
from torch import Tensor

from simllm.errors import InputError
from simllm.metric import SimLLM
from simllm.model import saved_model
from simllm.model.config import ModelConfig
from simllm.model.network import Encoder
from simllm.model.tokenizer import SPECIAL_TOKENS, Tokenizer
from train.distill import targets as pca_targets
from train.distill import teachers, texts
from train.distill.config import DistillConfig, StartConfig
from train.distill.targets import compute_principal_axes
from train.distill.task import DistillationTask
from train.distill.teachers import load_encoder, load_tokenizer
from train.runtime import loop, training_run
from train.runtime.checkpoint import Progress
from train.runtime.config import MODEL
from train.runtime.distributed import World
from train.runtime.log import open_log, print_progress
from train.runtime.provenance import git_revision, training_card, training_provenance
from train.runtime.signals import StopRequest
from train.runtime.training_run import run_training
from train.tokens import vocabulary

_SPACE = "▁"  # first character of a token at the start of a word
_SPECIAL = {"<s>": ("<s>", "[CLS]"), "</s>": ("</s>", "[SEP]"), "<mask>": ("<mask>", "[MASK]")}


def distil(config: DistillConfig, world: World, stop: StopRequest) -> Path:
    """Distil a student, or resume the run, and return the model folder that is best on the dev data."""
    out, revision = Path(config.out), git_revision()
    log = world.first_then_others(lambda: open_log(config, world))
    task, facts = prepare(config, world)
    if world.is_first:
        print_progress("training")
    start = task.metric.model

    def save_model(folder: Path, progress: Progress, criterion: float) -> None:
        provenance = {
            "objective": "distillation",
            **facts,
            **training_provenance(config, progress, world, revision),
            "dev_criterion": round(-criterion, 4),
        }
        info = saved_model.ModelInfo(provenance=provenance)
        card = training_card("Distilled from larger sentence encoders", provenance)
        saved_model.save(folder, task.model, start.tokenizer, info, card, keep_edits=False)

    identity = training_run.identity(config, start.hash, start.tokenizer.hash, str(facts))
    loop.train(config, task, world, stop, identity, log, save_model)
    return out / MODEL


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
            out / "vocabulary" / f"{stored.sha256[:12]}-{size}", stored.folder / texts.LINES, size
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
        untrained = make_student(config.model, tokenizer, config.start, config.seed)
        saved_model.save(
            folder, untrained, tokenizer, saved_model.ModelInfo(), "# A student before training\n"
        )
    return SimLLM(folder, mode="plain", device="cpu")


def make_student(config: ModelConfig, tokenizer: Tokenizer, source: StartConfig | None, seed: int) -> Encoder:
    """Make an untrained student, with random weights or weights from a teacher."""
    torch.manual_seed(seed)
    student = Encoder(config)
    if source is None:
        return student
    folder = Path(source.teacher)
    teacher = load_encoder(folder)
    vectors = average_token_vectors(teacher, load_tokenizer(folder), tokenizer)
    if vectors.shape[1] > config.hidden_size:
        # Principal axes keep most of the similarities between the token vectors.
        vectors = vectors @ torch.from_numpy(compute_principal_axes(vectors.numpy(), config.hidden_size))
    elif vectors.shape[1] < config.hidden_size:
        raise InputError(f"{folder}: has width {vectors.shape[1]}, the student {config.hidden_size}")
    with torch.no_grad():
        student.embeddings.token.weight.copy_(vectors)
    if source.layers:
        _copy_layers(teacher, student, source)
    return student


def _copy_layers(teacher: Encoder, student: Encoder, source: StartConfig) -> None:
    """Copy the layers `source.layers` of a teacher, and all its other weights except the token vectors."""
    count = len(teacher.layers)
    for name in ("hidden_size", "num_attention_heads", "intermediate_size"):
        ours, theirs = getattr(student.config, name), getattr(teacher.config, name)
        if ours != theirs:
            raise InputError(f"start.layers: the student's {name} is {ours}, the teacher's {theirs}")
    if len(source.layers) != len(student.layers) or not all(0 <= n < count for n in source.layers):
        raise InputError(
            f"start.layers: expected {len(student.layers)} numbers from 0 to {count - 1}, one for each layer"
        )
    rows, teacher_rows = (len(model.embeddings.position.weight) for model in (student, teacher))
    if rows > teacher_rows:
        raise InputError(f"start.layers: max_position_embeddings is {rows}, the teacher's {teacher_rows}")
    buckets = [len(model.relative_bias.table.weight) for model in (student, teacher)]
    if buckets[0] != buckets[1]:
        raise InputError(f"start.layers: {buckets[0]} relative positions, the teacher has {buckets[1]}")
    for layer, number in zip(student.layers, source.layers, strict=True):
        layer.load_state_dict(teacher.layers[number].state_dict())
    student.embeddings.norm.load_state_dict(teacher.embeddings.norm.state_dict())
    student.relative_bias.load_state_dict(teacher.relative_bias.state_dict())
    with torch.no_grad():
        student.embeddings.position.weight.copy_(teacher.embeddings.position.weight[:rows])


def average_token_vectors(teacher: Encoder, backend: Backend, tokenizer: Tokenizer) -> Tensor:
    """Compute the student's initial token vectors from a teacher's vectors of width D.

    The teacher's tokenizer splits each of the student's tokens; the mean of the vectors of these parts is the
    initial vector, 0 if there are none. Returns (student's vocabulary size, D).
    """
    table = teacher.embeddings.token.weight.detach()
    vocabulary = backend.get_vocab()
    result = torch.zeros(tokenizer.vocab_size, table.shape[1])
    for number in range(tokenizer.vocab_size):
        token = tokenizer.id_to_token(number)
        if token in SPECIAL_TOKENS:
            ids = [vocabulary[name] for name in _SPECIAL.get(token, ()) if name in vocabulary]
        else:
            ids = _teacher_ids(token, backend, vocabulary)
        if ids:
            result[number] = table[torch.tensor(ids)].mean(0)
    return result


def _teacher_ids(token: str, backend: Backend, vocabulary: dict[str, int]) -> list[int]:
    """Split a student's token with the teacher's tokenizer, and return the ids of the parts."""
    if token.startswith(_SPACE):
        text = token.removeprefix(_SPACE)
        return backend.encode(text, add_special_tokens=False).ids if text else []
    # WordPiece marks the inside of a word.
    if f"##{token}" in vocabulary:
        return [vocabulary[f"##{token}"]]
    return backend.encode(token, add_special_tokens=False).ids


if __name__ == "__main__":
    sys.exit(run_training(DistillConfig, distil, "train.distill", __doc__))
