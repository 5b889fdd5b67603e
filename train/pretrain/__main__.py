"""Pretrain an encoder, from the sources of a corpus to a model folder.

    python -m train.pretrain configs/debug.yaml
    python -m train.pretrain configs/mini.yaml out=runs/mine 'corpus.sources=[my/*.jsonl.gz]'
    torchrun --nproc_per_node 4 -m train.pretrain configs/base.yaml

The steps are: build the corpus, learn the vocabulary, write token shards (token ids on disk), train.
Results are kept in the folder `out`. To resume a training that was stopped or killed, rerun the same
command; the number of processes may change. Exit status: 0 done, 1 diverged, 2 bad input, 75 or 130
stopped by a signal.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from simllm.model import saved_model
from simllm.model.saved_model import SavedModel
from simllm.model.tokenizer import SPECIAL_TOKENS, Tokenizer
from train.corpus import build
from train.pretrain.config import PretrainConfig
from train.pretrain.task import PretrainingTask
from train.runtime import loop, training_run
from train.runtime.checkpoint import Progress
from train.runtime.config import MODEL
from train.runtime.distributed import World
from train.runtime.gradients import peak_flops
from train.runtime.log import format_time, open_log, print_progress
from train.runtime.loop import make_optimizer, set_up_encoders
from train.runtime.provenance import git_revision, training_card, training_provenance
from train.runtime.signals import StopRequest
from train.runtime.training_run import run_training
from train.tokens import shards, vocabulary
from train.tokens.shards import Shards

_TYPICAL = 16  # tokens of a typical summary
_PROBE = 2048  # tokens of the trial batch on a CPU, which take seconds


@dataclass(frozen=True)
class PretrainingData:
    """The data of a pretraining run.

    Attributes:
        test: The held-out texts.
        vectors: (V, D) initial token embeddings for V tokens; None: random.
        counts: The texts that were kept and left out when the corpus was built.
        start: The model to continue from; None: none.
    """

    tokenizer: Tokenizer
    train: Shards
    test: Shards
    vectors: np.ndarray | None
    corpus_hash: str
    counts: object
    start: SavedModel | None = None


def pretrain(config: PretrainConfig, world: World, stop: StopRequest) -> Path:
    """Pretrain an encoder, or resume the run; return the model folder with the lowest held-out perplexity."""
    out, revision = Path(config.out), git_revision()
    log = world.first_then_others(lambda: open_log(config, world))
    data = world.first_then_others(lambda: prepare_data(config, verbose=world.is_first))
    start = data.start
    encoder = start.encoder if start else None
    task = PretrainingTask(config, data.train, data.test, world, data.vectors, encoder)
    if world.is_first and start and start.head:
        print_progress("the meaning head of `start` does not fit the new encoder and is left out")

    def save_model(folder: Path, progress: Progress, perplexity: float) -> None:
        facts = {
            "objective": f"{config.objective} language modelling",
            "corpus_sha256": data.corpus_hash,
            "corpus_counts": data.counts,
            **training_provenance(config, progress, world, revision),
            "epochs": round(progress.tokens / task.batches.epoch_tokens, 2),
            "test_perplexity": round(perplexity, 4),
            **({"start": {"hash": start.hash, **start.info.provenance}} if start else {}),
        }
        like = start.info if start else saved_model.ModelInfo()
        info = saved_model.ModelInfo(like.pooling, like.similarity, facts)
        card = training_card("Pretrained on code comments", facts)
        saved_model.save(folder, task.model.encoder, data.tokenizer, info, card, keep_edits=False)

    inputs = [data.corpus_hash, data.tokenizer.hash, *([start.hash] if start else [])]
    identity = training_run.identity(config, *inputs)
    loop.train(config, task, world, stop, identity, log, save_model)
    return out / MODEL


def prepare_data(config: PretrainConfig, verbose: bool) -> PretrainingData:
    """Build the corpus, the vocabulary and the shards, or load those that `config.out` has already."""
    out = Path(config.out)
    report = print_progress if verbose else lambda line: None
    report("corpus")
    corpus = build.build(config.corpus, out / "corpus")
    report(f"  {corpus['counts']}")

    corpus_hash = str(corpus["sha256"])
    start = saved_model.load(config.start) if config.start else None
    if start:
        tokenizer = start.tokenizer
    else:
        report("vocabulary")
        name = f"{corpus_hash[:12]}-{config.model.vocab_size}"
        tokenizer = vocabulary.load_or_learn(
            out / "vocabulary" / name, out / "corpus" / build.TRAIN, config.model.vocab_size
        )

    report("shards")
    train, test = (
        shards.write_or_load(
            out / "corpus" / file, corpus_hash, tokenizer, config.model.max_length, out / "shards" / file
        )
        for file in (build.TRAIN, build.TEST)
    )
    report(f"  {len(train.lengths):,} texts, {train.tokens:,} tokens; {train.truncated:,} texts were cut")
    vectors, model = None, config.model
    if config.token_vectors == "ppmi":
        report("token vectors")
        name = f"{corpus_hash[:12]}-{tokenizer.hash}-{model.max_length}-{model.hidden_size}"
        vectors = vocabulary.load_or_compute_vectors(
            out / "vectors" / name, train, model.vocab_size, model.hidden_size
        )
        # The vectors have a standard deviation of 1.
        vectors *= model.initializer_range
    report("training")
    return PretrainingData(tokenizer, train, test, vectors, corpus_hash, corpus["counts"], start)


def estimate(config: PretrainConfig, world: World) -> str:
    """Train on random tokens for two updates, and extrapolate to a table in plain text."""
    device, whole = world.device, config
    if device.type == "cpu" and peak_flops(device, config.precision) < peak_flops(device, "fp32"):
        # The CPU emulates bfloat16: a trial would take minutes.
        config = replace(config, precision="fp32")
    length = config.model.max_length if config.packing == "blocks" else min(_TYPICAL, config.model.max_length)
    tokens = config.batch_tokens if device.type == "cuda" else max(_PROBE, config.model.max_length)
    config = replace(config, batch_tokens=-(-tokens // length) * length, accumulation=1)
    texts = 2 * math.ceil(config.batch_tokens / length)
    ids = np.random.default_rng(0).integers(len(SPECIAL_TOKENS), config.model.vocab_size, texts * length)
    shards = Shards([ids], np.full(texts, length))
    task = PretrainingTask(config, shards, shards, World(device=device))
    set_up_encoders(task.model, config)
    adam = make_optimizer(task.model, config)
    times, activations = [], 0
    # The first update also compiles, allocates and fills caches.
    for update in range(2):
        started = time.perf_counter()
        with _saved_bytes(device) as saved:
            loss, tokens = task.losses(update)[0]()
        activations = sum(saved.values())
        loss.backward()
        adam.step()
        adam.zero_grad()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - started)

    parameters = sum(p.numel() for p in task.model.parameters())
    # Weights, gradients and Adam's two moments take 4 bytes each per parameter.
    memory = 16 * parameters + activations / tokens * whole.batch_tokens
    if device.type == "cuda":  # the trial batch has the real size
        memory = torch.cuda.max_memory_allocated(device)
    speed = tokens / times[-1] * world.size
    total = whole.update_tokens * whole.updates
    flops = task.flops_per_token
    # A measured peak is too low if other programs ran meanwhile.
    share = min(speed * flops / (peak_flops(device, config.precision) * world.size), 1)
    kind = f"{length} tokens each, random"
    emulated = config.precision != whole.precision
    rows = {
        "parameters": f"{parameters / 1e6:.1f} M, language-model head included",
        "tokens per update": f"{whole.update_tokens:,} = {whole.accumulation} x {whole.batch_tokens:,}",
        "tokens in total": f"{total / 1e9:.3g} billion in {whole.updates:,} updates",
        "arithmetic": f"{flops / 1e9:.3g} GFLOP per token, {flops * total:.3g} FLOP in total",
        "memory": f"{memory / 2**30:.1f} GiB per process: weights, gradients, Adam, one batch's activations",
        "device": f"{world.size} x {device}, {config.precision}: {speed:,.0f} tokens/s, MFU {share:.0%}"
        f" (texts of {kind})",
        "time": f"{format_time(total / speed)}, evaluation not counted"
        + (f", with precision=fp32; {whole.precision} takes longer on this CPU" if emulated else ""),
    }
    width = max(map(len, rows))
    return "\n".join(f"{name:{width}}  {value}" for name, value in rows.items())


@contextmanager
def _saved_bytes(device: torch.device) -> Iterator[dict[int, int]]:
    """Record the tensors that are stored for the backward pass: from memory address to bytes.

    The dictionary is filled inside the context, and stays empty on a GPU, where PyTorch measures memory.
    """
    saved: dict[int, int] = {}
    if device.type == "cuda":
        yield saved
        return

    def keep(tensor: Tensor) -> Tensor:
        # Weights are counted already.
        if not (tensor.is_leaf and tensor.requires_grad):
            saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield saved


if __name__ == "__main__":
    sys.exit(run_training(PretrainConfig, pretrain, "train.pretrain", __doc__, estimate))
