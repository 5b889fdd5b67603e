"""The contrastive stage: texts that mean the same are drawn together, all others apart.

    python -m train.contrastive configs/contrastive.yaml
    python -m train.contrastive configs/contrastive.yaml model=runs/mine/model out=runs/mine-tuned
    torchrun --nproc_per_node 4 -m train.contrastive configs/contrastive.yaml

Starts from a model folder and leaves one. A run that was stopped or killed goes on when
the same command is given again, also with another number of processes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn

from simllm.metric import SimLLM
from simllm.model import checkpoint, pooling
from simllm.scoring.encode import batch_slices, pad
from train.contrastive.auxiliary_lm import Beside
from train.contrastive.batches import Update, Updates, digest
from train.contrastive.dev_criterion import Agreement
from train.contrastive.lexical_teacher import follow
from train.contrastive.losses import cosent, info_nce
from train.pretrain.batches import seed_of
from train.runtime import command, loop
from train.runtime.config import ContrastiveConfig
from train.runtime.distributed import World
from train.runtime.log import log_of, say
from train.runtime.signals import Stop
from train.runtime.state import Progress


class Contrastive:
    """The task: InfoNCE over pairs from several sources, judged by how far the model agrees."""

    def __init__(self, config: ContrastiveConfig, world: World) -> None:
        self.config, self.world = config, world
        self.metric = SimLLM(config.model, mode="plain", device="cpu")
        start = self.metric.checkpoint
        self.encoder = start.encoder.to(world.device)
        self.pool = pooling.get_pooling(self.metric.pooling)
        self.updates = Updates(config, start)
        asked = config.language_model
        self.beside = Beside(asked, config, start, self.updates.excluded, world) if asked else None
        self.model: nn.Module = self.beside.model if self.beside else self.encoder
        self.agreement = Agreement(config)

    @property
    def flops_per_token(self) -> float:
        """Six for each weight of the layers: two forward, four backward."""
        return 6.0 * sum(p.numel() for p in self.encoder.layers.parameters())

    def in_words(self, loss: float) -> str:
        """InfoNCE, in nats."""
        return f"loss {loss:.3f}"

    def describe(self, update: int) -> str:
        """The first pair of an update."""
        first, *_ = self.updates.pairs(update)
        return f"{self.config.pairs} pairs ({first.first!r} and {first.second!r}, …)"

    def losses(self, update: int) -> Iterator[tuple[Tensor, int]]:
        """One loss over all texts of the update, which the processes embed in turns.

        The loss has a gradient at every embedding; each chunk of texts then passes its own on
        to the weights. With `cache_gradients` a chunk is embedded a second time for that, and
        no more than one is held in memory (Gao et al., "Scaling deep contrastive learning batch
        size under memory limited setup", 2021).
        """
        batch = self.updates[update]
        order = sorted(range(len(batch.ids)), key=lambda i: len(batch.ids[i]))  # little padding
        budget = self.config.chunk_tokens
        chunks = [order[rows] for rows in batch_slices([batch.ids[i] for i in order], budget)]
        mine = list(enumerate(chunks))[self.world.rank :: self.world.size]

        def embed(number: int, texts: list[int]) -> Tensor:
            torch.manual_seed(seed_of(self.config.seed, update, number))  # dropout, alike both times
            return self._embed([batch.ids[i] for i in texts])

        with torch.set_grad_enabled(not self.config.cache_gradients):
            embedded = [embed(*chunk) for chunk in mine]
        everything = torch.zeros(len(order), self.encoder.config.hidden_size, device=self.world.device)
        for (_, texts), rows in zip(mine, embedded, strict=True):
            everything[texts] = rows.detach()
        self.world.add(everything)
        loss = self._loss(everything.requires_grad_(), batch)
        (gradient,) = torch.autograd.grad(loss, everything)
        for chunk, rows in zip(mine, embedded, strict=True):
            again = embed(*chunk) if self.config.cache_gradients else rows
            part = (again * gradient[chunk[1]]).sum()
            tokens = sum(len(batch.ids[i]) for i in chunk[1])
            yield part - part.detach() + loss.detach() / len(chunks), tokens
        if self.beside:
            yield from self.beside.losses(update)

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """How far the model agrees with people, and prefers meaning to words."""
        return self.agreement(self.metric)

    def _embed(self, ids: list[list[int]]) -> Tensor:
        """(len(ids), D) float32 embeddings."""
        tokens, mask = (tensor.to(self.world.device) for tensor in pad(ids))
        with self.world.autocast(self.config.precision):
            return self.pool(self.encoder(tokens, mask), mask).float()

    def _loss(self, embeddings: Tensor, batch: Update) -> Tensor:
        config, device = self.config, self.world.device
        first, second, negatives, _, *sides = (embeddings[a:b] for a, b in pairwise(batch.ends))
        same, known, weight = batch.same.to(device), batch.known.to(device), config.hard_negative_weight
        loss = info_nce(first, second, same, config.temperature, negatives, weight, known)
        if batch.cosines is not None and config.overlap:
            compared = torch.cat([first, embeddings[batch.ends[3] :]])
            loss = loss + config.overlap.weight * follow(
                compared, batch.cosines.to(device), config.temperature
            )
        for source, some, a, b in zip(config.rated, batch.rated, sides[::2], sides[1::2], strict=True):
            values, sets = (torch.from_numpy(x).to(device) for x in (some.ratings, some.sets))
            loss = loss + source.weight * cosent(a, b, values, sets, config.temperature)
        return loss


def train(config: ContrastiveConfig, world: World, stop: Stop) -> Path:
    """Do the whole run; returns the model folder that agrees best."""
    out, revision = Path(config.out), command.git_revision()
    log = world.first_does(lambda: log_of(config, world))
    task = world.first_does(lambda: Contrastive(config, world))
    if world.first:
        for source in task.updates.positives:
            say(f"  {len(source):,} pairs from {source.config.source}")
        say("training")
    start = task.metric.checkpoint

    def keep_best(progress: Progress) -> None:
        facts = {
            "objective": "contrastive (InfoNCE)" + (", language modelling" if task.beside else ""),
            "pairs": {
                f"{number}. {source.config.source}": len(source)
                for number, source in enumerate(task.updates.positives, 1)
            },
            **command.provenance(config, progress, world, revision),
            "dev_criterion": round(-progress.best, 4),
            "start": {"hash": start.hash, **start.info.provenance},
        }
        info = checkpoint.ModelInfo(start.info.pooling, start.info.similarity, facts)
        card = command.card("Pretrained on code comments, then trained on pairs that mean the same", facts)
        checkpoint.save(out / "model", task.encoder, start.tokenizer, info, card)

    inputs = (start.hash, start.tokenizer.hash, start.info.pooling, digest(config))
    loop.train(config, task, world, stop, command.identity(config, *inputs), log, keep_best)
    return out / "model"


if __name__ == "__main__":
    sys.exit(command.command(ContrastiveConfig, train, "train.contrastive", __doc__))
