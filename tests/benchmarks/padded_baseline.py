"""Plain baseline for pretraining: padded batches, logits at every position, no compilation."""

from functools import partial

import numpy as np
import torch
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from simllm.model.network import attention
from train.pretrain.permutation import is_visible
from train.runtime.gradients import PRECISIONS

IGNORED = 1  # the padding token


class Plain:
    """Pretraining with a fixed number of random texts in each batch, padded to the longest text."""

    def __init__(self, task, texts):
        self.task, self.texts, self.paddings = task, texts, []
        self.order = np.random.default_rng(0).permutation(task.batches.texts)

    def losses(self, update):
        """Return, for each batch of an update, a function that computes its loss."""
        parts, tokens, number = [], 0, 0
        while tokens < self.task.config.update_tokens:
            first = (1000 * update + number) * self.texts
            chosen = np.take(self.order, np.arange(first, first + self.texts), mode="wrap")
            batch = self.task.batches.make_batch(np.zeros_like(chosen), chosen)
            parts.append(partial(self.loss, batch))
            tokens, number = tokens + batch.text_tokens, number + 1
        return parts

    def loss(self, batch):
        """Return the mean loss of a batch, and the number of tokens in its texts."""
        columns, device = len(batch.prediction_turns), self.task.world.device
        own = [batch.texts == text for text in range(len(batch.shape))]

        def padded(rows, value):
            """Turn a flat array of the batch into a matrix with a row for each text, padded with `value`.

            A row holds the content stream of the text. If the array has query streams, too, the query stream
            of the text follows.
            """
            streams = [rows[:columns], rows[columns:]] if len(rows) > columns else [rows]
            masks = [[mask[:columns] for mask in own], [mask[columns:] for mask in own]]
            parts = (
                pad_sequence([stream[mask] for mask in masks], batch_first=True, padding_value=value)
                for stream, masks in zip(streams, masks, strict=False)
            )
            return torch.cat(list(parts), 1)

        tokens, positions, visible_originals = (
            padded(rows, 0) for rows in (batch.tokens, batch.positions, batch.visible_originals)
        )
        real, turns = (
            padded(torch.ones_like(batch.prediction_turns), 0).bool(),
            padded(batch.prediction_turns, 0),
        )
        targets = torch.full_like(tokens, IGNORED)
        queries = [batch.targets[mask[columns:]] for mask in own]
        targets[:, turns.shape[1] :] = pad_sequence(queries, batch_first=True, padding_value=IGNORED)
        self.paddings.append(1 - len(batch.tokens) / tokens.numel())
        prepared = (x.to(device) for x in (tokens, positions, visible_originals, real, turns, targets))
        return self._sum(*prepared) / batch.predicted, batch.text_tokens

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
