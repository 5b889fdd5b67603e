"""The distillation task: the student, its losses and its evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from simllm.metric import SimLLM
from simllm.model import pooling
from train.distill.batches import Imitation
from train.distill.config import DistillConfig
from train.distill.targets import Targets
from train.runtime.dev_criterion import DevCriterion
from train.runtime.distributed import World
from train.runtime.gradient_exchange import LossPart
from train.runtime.optimizer import autocast


class DistillationTask:
    """The task that the training loop runs: the student is the encoder of `metric`, and changes."""

    def __init__(
        self,
        config: DistillConfig,
        metric: SimLLM,
        targets: Targets,
        world: World,
    ) -> None:
        self.config, self.world, self.metric = config, world, metric
        self.model = metric.model.encoder.to(world.device)
        self.imitation = Imitation(
            config,
            targets,
            metric.model.tokenizer,
            self._embed,
            max_length=config.model.max_length,
            chunk_tokens=config.chunk_tokens,
            temperature=config.temperature,
            cache_gradients=False,
            seed=config.seed,
            world=world,
        )
        self.dev_criterion = DevCriterion(config.dev, None, config.seed)

    @property
    def flops_per_token(self) -> float:
        """Estimated floating-point operations per trained token."""
        # Each weight needs 2 operations in the forward pass and 4 in the backward pass.
        return 6.0 * sum(p.numel() for p in self.model.layers.parameters())

    def format_loss(self, loss: float) -> str:
        """Format the loss of one update for the progress bar."""
        return f"loss {loss:.3f}"

    def describe_texts(self, update: int) -> str:
        """Describe the groups of one update for the error message of a diverged run."""
        groups = self.imitation.choose_groups(update)
        return f"{len(groups)} groups of texts ({self.imitation.first_texts[groups[0]]!r}, …)"

    def losses(self, update: int) -> Sequence[LossPart]:
        """Return the parts of the loss of one update that this process computes."""
        return self.imitation.losses(update)

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Return the dev criterion (lower is better) and the figures for the log, by name."""
        return self.dev_criterion(self.metric)

    def _embed(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Compute (B, D) float32 embeddings from (B, L) token ids and their (B, L) mask, 0 for padding."""
        with autocast(self.world.device, self.config.precision):
            return pooling.mean(self.model(tokens, mask), mask).float()
