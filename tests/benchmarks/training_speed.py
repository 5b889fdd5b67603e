"""Measurement of the speed of training, beside that of a plain baseline."""

import statistics
import time
from dataclasses import replace

import torch
from torch import nn

from tests.benchmarks import machine
from tests.benchmarks.padded_baseline import Plain
from train.pretrain.task import PretrainingTask
from train.runtime.gradients import GradientExchange, peak_flops
from train.runtime.loop import make_optimizer


def compiled_graphs():
    """Return the number of graphs that torch.compile has compiled in this process."""
    from torch._dynamo.utils import counters

    return counters["stats"]["unique_graphs"]


class Stepper:
    """Runs optimizer steps; measures the time of each step, and how long it waits for its batches.

    Steps in which something was compiled do not count, nor does the first step.
    """

    def __init__(self, task, losses):
        self.task, self.losses = task, losses
        self.exchange = GradientExchange(task.model, task.world)
        self.adam = make_optimizer(task.model, task.config)
        self.update, self.tokens, self.times, self.waits, self.warm_up = 0, [], [], [], 0.0

    def step(self):
        started, tokens, compiled = time.perf_counter(), 0, compiled_graphs()
        parts = self.losses(self.update)
        waited = time.perf_counter() - started
        for number, compute in enumerate(parts, 1):
            loss, count = compute()
            self.exchange.backward(loss, is_last=number == len(parts))
            tokens += count
        nn.utils.clip_grad_norm_(self.task.model.parameters(), self.task.config.clip_norm)
        self.adam.step()
        self.adam.zero_grad()
        if self.task.world.device.type == "cuda":
            torch.cuda.synchronize()
        seconds = time.perf_counter() - started
        if self.update and compiled_graphs() == compiled:
            self.times.append(seconds)
            self.waits.append(waited)
            self.tokens.append(tokens)
        else:
            self.warm_up += seconds
        self.update += 1

    def speed(self):
        """Return the tokens per second of the median step."""
        return statistics.median(n / t for n, t in zip(self.tokens, self.times, strict=True))


def beside_baseline(settings, data, world, seconds, baseline_texts):
    """Measure simllm and the baseline in turns, until each has run for `seconds` after its warm-up.

    Each input of the baseline is one text, padded to the longest in its batch.
    """
    padded = replace(settings, packing="documents")
    tasks = [PretrainingTask(each, data, data, world) for each in (settings, padded)]
    plain = Plain(tasks[1], baseline_texts)
    tasks[1].model.make_attention = None  # not needed by the baseline
    for layer in tasks[1].model.encoder.layers:
        layer._compiled_call_impl = None
    steppers = [Stepper(tasks[0], tasks[0].losses), Stepper(tasks[1], plain.losses)]
    memory = []
    for stepper in steppers:
        stepper.step()
        with machine.PeakMemory(world.device) as taken:
            stepper.step()
        memory.append(taken.peak)
    while min(sum(stepper.times) for stepper in steppers) < seconds:
        min(steppers, key=lambda stepper: sum(stepper.times)).step()
        assert max(stepper.warm_up for stepper in steppers) < 300 + seconds, (
            "something is compiled in each step"
        )
    rows = tasks[0]._prepare_batches(0)[0]
    real = sum(int(batch.shape.sum() + batch.shape[:, 1].sum()) for batch in rows)
    padding = [1 - real / sum(len(batch.tokens) for batch in rows), statistics.mean(plain.paddings)]
    peak = peak_flops(world.device, settings.precision)
    return {
        name: {
            "tokens_per_second": round(stepper.speed()),
            "mfu": round(stepper.speed() * tasks[i].flops_per_token / peak, 3),
            "peak_memory_mb": round(memory[i] / 1e6),
            "padding": round(padding[i], 4),
            "waiting": round(sum(stepper.waits) / sum(stepper.times), 4),
            "steps": len(stepper.times),
            "warm_up_seconds": round(stepper.warm_up, 1),
        }
        for i, (name, stepper) in enumerate(zip(("simllm", "plain"), steppers, strict=True))
    } | {"ratio": round(steppers[0].speed() / steppers[1].speed(), 2), "peak_flops": peak}
