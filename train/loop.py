"""The trainer: one visible loop."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from simllm.errors import InputError
from train import state
from train.batches import Batches, seed_of
from train.config import PretrainConfig
from train.objective import PermutedLanguageModel
from train.optim import learning_rate, optimizer


class Interrupted(Exception):  # noqa: N818 (it is no error)
    """The run was asked to stop by a signal and has saved its state."""


def train(
    config: PretrainConfig,
    model: PermutedLanguageModel,
    batches: Batches,
    test_batches: Batches,
    run: str,
    record: Callable[[dict[str, Any]], None],
    keep_best: Callable[[state.Progress], None],
) -> state.Progress:
    """Train `model` for `config.updates` updates, from where the last saved state stands.

    `record` takes each line of the log, `keep_best` is called whenever the test perplexity
    has fallen below all before; `run` identifies the configuration to the saved states.
    Raises Interrupted after SIGINT or SIGTERM, InputError when the loss is no longer finite.
    """
    states = Path(config.out) / "states"
    adam = optimizer(model, config)
    progress = state.resume(states, run, model, adam)
    stop = _Stop()
    summed_loss, predicted_tokens, started = 0.0, 0, time.monotonic()
    while progress.update < config.updates:
        rate = learning_rate(progress.update, config)
        for group in adam.param_groups:
            group["lr"] = rate

        first = progress.update * config.accumulation
        update = [batches[first + i] for i in range(config.accumulation)]
        predicted = sum(batch.targets.numel() for batch in update)
        torch.manual_seed(seed_of(config.seed, progress.update))  # dropout follows the update
        model.train()
        for batch in update:
            with torch.autocast("cpu", torch.bfloat16, enabled=config.bf16):
                loss = model.loss(batch) / predicted
            loss.backward()
            summed_loss += loss.item() * predicted
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        if not math.isfinite(norm):
            raise InputError(f"update {progress.update}: gradient norm {norm}; learning rate {rate:.2g}")
        adam.step()
        adam.zero_grad()

        progress.update += 1
        progress.tokens += sum(batch.text_tokens for batch in update)
        predicted_tokens += predicted
        if progress.update % config.evaluate_every == 0 or progress.update == config.updates or stop.asked:
            progress.seconds += time.monotonic() - started
            perplexity = test_perplexity(model, test_batches, config)
            record(
                {
                    "update": progress.update,
                    "epoch": round(first / len(batches), 3),
                    "train_perplexity": round(math.exp(summed_loss / predicted_tokens), 3),
                    "test_perplexity": round(perplexity, 3),
                    "learning_rate": rate,
                    "gradient_norm": round(float(norm), 4),
                    "tokens": progress.tokens,
                    "seconds": round(progress.seconds, 1),
                }
            )
            if perplexity < progress.best_perplexity:
                progress.best_perplexity = perplexity
                keep_best(progress)
            state.save(states, run, progress, model, adam)
            summed_loss, predicted_tokens, started = 0.0, 0, time.monotonic()
            if stop.asked and progress.update < config.updates:
                raise Interrupted(f"stopped after update {progress.update}; the same command goes on")
    return progress


@torch.no_grad()
def test_perplexity(model: PermutedLanguageModel, batches: Batches, config: PretrainConfig) -> float:
    """Perplexity over the predicted tokens of fixed held-out texts with fixed permutations."""
    model.eval()
    total, count = 0.0, 0
    for batch in batches.fixed(config.test_texts):
        with torch.autocast("cpu", torch.bfloat16, enabled=config.bf16):
            total += model.loss(batch).item()
        count += batch.targets.numel()
    return math.exp(total / count)


class _Stop:
    """Turns the first SIGINT or SIGTERM into a wish to stop after the update."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        signal.signal(number, signal.SIG_DFL)
