"""The contrastive stage: texts that mean the same are drawn together, all others apart.

    python -m train.contrastive configs/contrastive.yaml
    python -m train.contrastive configs/contrastive.yaml model=runs/mine/model out=runs/mine-tuned

Starts from a model folder and leaves one. A run that was stopped or killed goes on when
the same command is given again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from simllm import checkpoint, pooling
from simllm.encode import padded
from simllm.errors import InputError
from simllm.evaluation import ratings
from simllm.metric import SimLLM
from train import loop, run
from train.config import ContrastiveConfig
from train.corpus import evaluated
from train.distributed import World
from train.flops import PRECISIONS
from train.log import log_of, say
from train.positives import Pair, Positives, draw
from train.signals import Stop
from train.state import Progress

_CHUNK = 64  # texts encoded together: neighbours in length, so that little is padded


def info_nce(first: Tensor, second: Tensor, groups: Sequence[bytes], temperature: float) -> Tensor:
    """Symmetric InfoNCE of (B, D) against (B, D): row i of one belongs to row i of the other.

    The negatives of a row are all other rows, but for those of its own group, which mean
    the same.
    """
    logits = F.normalize(first, dim=1) @ F.normalize(second, dim=1).T / temperature
    same = torch.tensor([[a == b for b in groups] for a in groups])
    logits = logits.masked_fill(same & ~torch.eye(len(groups), dtype=torch.bool), -torch.inf)
    targets = torch.arange(len(groups))
    return (F.cross_entropy(logits, targets) + F.cross_entropy(logits.T, targets)) / 2


class Contrastive:
    """The task: InfoNCE over pairs from several sources, judged by Spearman on a rated file."""

    def __init__(self, config: ContrastiveConfig) -> None:
        self.config = config
        self.metric = SimLLM(config.model)
        self.model = self.metric.checkpoint.encoder
        self.rated = ratings.load(Path(config.dev))
        excluded = evaluated.read(config.exclude)
        self.positives = [Positives(source, excluded) for source in config.positives]

    @property
    def flops_per_token(self) -> float:
        """Six for each weight of the layers: two forward, four backward."""
        return 6.0 * sum(p.numel() for p in self.model.layers.parameters())

    def in_words(self, loss: float) -> str:
        """InfoNCE, in nats."""
        return f"loss {loss:.3f}"

    def describe(self, update: int) -> str:
        """The first pair of an update."""
        first, *_ = draw(self.positives, self.config.pairs, self.config.seed, update)
        return f"{self.config.pairs} pairs ({first.first!r} and {first.second!r}, …)"

    def losses(self, update: int) -> Iterator[tuple[Tensor, int]]:
        """One InfoNCE over all pairs of the update."""
        pairs: list[Pair] = draw(self.positives, self.config.pairs, self.config.seed, update)
        texts = [pair.first for pair in pairs] + [pair.second for pair in pairs]
        precision = self.config.precision
        with torch.autocast("cpu", PRECISIONS[precision], enabled=precision != "fp32"):
            embeddings, tokens = self._embed(texts)
        first, second = embeddings.float().chunk(2)
        yield info_nce(first, second, [pair.group for pair in pairs], self.config.temperature), tokens

    def _embed(self, texts: list[str]) -> tuple[Tensor, int]:
        """(len(texts), D) embeddings with gradients, and the number of tokens."""
        pool, tokenizer = pooling.named(self.metric.pooling), self.metric.checkpoint.tokenizer
        ids = [tokenizer.cut(text, self.model.config.max_length) for text in tokenizer.encode(texts)]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        parts = []
        for start in range(0, len(order), _CHUNK):
            tokens, mask = padded([ids[i] for i in order[start : start + _CHUNK]])
            parts.append(pool(self.model(tokens, mask), mask))
        back = torch.from_numpy(np.argsort(order))
        return torch.cat(parts)[back], sum(map(len, ids))

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Spearman's correlation with the ratings; the criterion is its negative."""
        from scipy.stats import spearmanr

        values = self.metric.score(self.rated.candidates, self.rated.references).values
        rho = float(spearmanr(values, self.rated.values).statistic)
        return -rho, {"dev_spearman": rho}


def train(config: ContrastiveConfig, world: World, stop: Stop) -> Path:
    """Do the whole run; returns the model folder with the best correlation on `dev`."""
    if world.size > 1:
        raise InputError("the contrastive stage trains in one process")
    world = World()  # it trains on the CPU
    out, revision, log = Path(config.out), run.git_revision(), log_of(config, world)
    say("positives")
    task = Contrastive(config)
    for source in task.positives:
        say(f"  {len(source.pairs):,} from {source.config.source}")
    start = task.metric.checkpoint

    def keep_best(progress: Progress) -> None:
        facts = {
            "objective": "contrastive (InfoNCE)",
            "pairs": {source.config.source: len(source.pairs) for source in task.positives},
            **run.provenance(config, progress, world, revision),
            "dev_spearman": round(-progress.best, 4),
            "start": {"hash": start.hash, **start.info.provenance},
        }
        info = checkpoint.ModelInfo(start.info.pooling, start.info.similarity, facts)
        card = run.card("Pretrained on code comments, then trained on pairs that mean the same", facts)
        checkpoint.save(out / "model", task.model, start.tokenizer, info, card)

    say("training")
    loop.train(config, task, world, stop, run.identity(config, start.hash), log, keep_best)
    return out / "model"


if __name__ == "__main__":
    sys.exit(run.command(ContrastiveConfig, train, "train.contrastive", __doc__))
