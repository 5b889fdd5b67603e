"""Plain baseline for pretraining: padded batches, logits at every position, no compilation."""

from functools import partial

import numpy as np
import torch
from torch.nn import functional as F

from simllm.model.network import attention
from train.pretrain.permutation import is_visible
from train.runtime.batching import Prefetcher
from train.runtime.gradients import PRECISIONS

IGNORED = 1  # the padding token


class Plain:
    """Pretraining with a fixed number of random texts in each batch, padded to the longest text.

    As in simllm, batches are prepared beside the training, in pinned memory.
    """

    def __init__(self, task, texts):
        self.task, self.texts, self.paddings = task, texts, []
        self.order = np.random.default_rng(0).permutation(task.batches.texts)
        self._prefetcher = Prefetcher(self._prepare)

    def losses(self, update):
        """Return, for each batch of an update, a function that computes its loss."""
        return [partial(self.loss, *prepared) for prepared in self._prefetcher[update]]

    def loss(self, tensors, predicted, text_tokens):
        """Return the mean loss of a batch, and the number of tokens in its texts."""
        device = self.task.world.device
        return self._sum(*(x.to(device, non_blocking=True) for x in tensors)) / predicted, text_tokens

    def _prepare(self, update):
        """Return, for each batch of an update, its padded tensors, and its predicted and text tokens."""
        prepared, tokens, number = [], 0, 0
        while tokens < self.task.config.update_tokens:
            first = (1000 * update + number) * self.texts
            chosen = np.take(self.order, np.arange(first, first + self.texts), mode="wrap")
            batch = self.task.batches.make_batch(np.zeros_like(chosen), chosen)
            tensors = self._pad(batch)
            if self.task.world.device.type == "cuda":
                tensors = [tensor.pin_memory() for tensor in tensors]
            prepared.append((tensors, batch.predicted, batch.text_tokens))
            tokens, number = tokens + batch.text_tokens, number + 1
        return prepared

    def _pad(self, batch):
        """Turn the flat arrays of a batch into matrices with a row for each text.

        A row holds the content stream of the text. If the array has query streams, too, the query stream of
        the text follows.
        """
        columns, lengths = len(batch.prediction_turns), torch.from_numpy(batch.shape)
        inside = [torch.arange(n.max()) < n[:, None] for n in (lengths.sum(1), lengths[:, 1])]

        def padded(rows, streams):
            parts = [torch.zeros(mask.shape, dtype=torch.long) for mask in streams]
            for part, mask, stream in zip(parts, streams, rows.tensor_split([columns]), strict=False):
                part[mask] = stream
            return torch.cat(parts, 1)

        tokens, positions, visible_originals = (
            padded(rows, inside) for rows in (batch.tokens, batch.positions, batch.visible_originals)
        )
        targets = torch.full_like(tokens, IGNORED)
        targets[:, inside[0].shape[1] :][inside[1]] = batch.targets
        self.paddings.append(1 - len(batch.tokens) / tokens.numel())
        turns = padded(batch.prediction_turns, inside[:1])
        return [tokens, positions, visible_originals, inside[0], turns, targets]

    def _sum(self, tokens, positions, visible_originals, real, turns, targets):
        """Return the sum of the losses of the predicted tokens; logits are computed at every position."""
        model, config = self.task.model, self.task.config
        precision = PRECISIONS[config.precision]
        with torch.autocast(tokens.device.type, precision, enabled=precision != torch.float32):
            bias = model.encoder.relative_bias(positions, positions[:, : turns.shape[1]])
            seen = is_visible(visible_originals[:, :, None], turns[:, None]) & real[:, None]
            bias = bias.masked_fill(~seen[:, None], torch.finfo(bias.dtype).min)
            mix = partial(attention, attn_mask=bias, dropout_p=model.encoder.attention_dropout)
            logits = model.logits(model.encoder.encode_rows(tokens, positions, turns.shape[1], mix))
            return F.cross_entropy(
                logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED, reduction="sum"
            )
