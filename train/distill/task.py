"""The distillation task, which gives the training loop the student, its losses and its evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from simllm.metric import SimLLM
from simllm.model import pooling
from train.distill.config import DistillConfig
from train.distill.distillation_batches import Imitation
from train.distill.pca_targets import Targets
from train.runtime.dev_criterion import DevCriterion
from train.runtime.distributed import World
from train.runtime.gradient_exchange import LossPart
from train.runtime.mixed_precision import autocast


class DistillationTask:
    """The distillation task, which gives the training loop the student, its losses and its evaluation.

    Args:
        config: The configuration of the run.
        metric: A model that scores text pairs. Its encoder is the untrained student, which training changes.
        targets: The training texts, and the embeddings that the student should learn.
        world: The processes of the run.
    """

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
        """Approximate floating-point operations of training per token, for the reported hardware utilization.

        Each weight of the layers needs 2 operations in the forward pass and 4 in the backward pass.
        """
        return 6.0 * sum(p.numel() for p in self.model.layers.parameters())

    def format_loss(self, loss: float) -> str:
        """Format the loss of one update (optimizer step) for the progress bar."""
        return f"loss {loss:.3f}"

    def describe_texts(self, update: int) -> str:
        """Describe the texts of one update (optimizer step), for the error message of a diverged training.

        The description has the number of groups, and the first text. A group has related texts, such as a
        text and its rewording.
        """
        groups = self.imitation.choose_groups(update)
        return f"{len(groups)} groups of texts ({self.imitation.first_texts[groups[0]]!r}, …)"

    def losses(self, update: int) -> Sequence[LossPart]:
        """Return functions that compute the loss of one update (optimizer step), term by term.

        The texts of the update are divided into chunks, and the chunks are divided among the processes. The
        loss is the sum of one term for each chunk.

        Args:
            update: Number of the update, from 0.

        Returns:
            A function without arguments for each chunk of this process. The function returns the chunk's term
            of the loss (a scalar), and the number of tokens in the chunk.
        """
        return self.imitation.losses(update)

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Evaluate the student on the dev data.

        Returns:
            The number that chooses the best model (lower is better), and a dict of figures for the log. The
            number is the negative mean of the correlations between the student's scores and human ratings.
        """
        return self.dev_criterion(self.metric)

    def _embed(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Compute (B, D) float32 embeddings from (B, L) token ids and their (B, L) mask, 0 for padding."""
        with autocast(self.world.device, self.config.precision):
            return pooling.mean(self.model(tokens, mask), mask).float()
