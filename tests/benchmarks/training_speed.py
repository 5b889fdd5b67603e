"""Measurement of the speed of training, beside that of a plain baseline."""

import statistics
import time

import torch
from torch import nn

from tests.benchmarks import machine
from tests.benchmarks.padded_baseline import Plain
from train.pretrain.task import PretrainingTask
from train.runtime.gradients import GradientExchange, peak_flops
from train.runtime.loop import make_optimizer


class Stepper:
    """Runs optimizer steps; measures the time of each step, and how long it waits for its batches."""

    def __init__(self, task, losses):
        self.task, self.losses = task, losses
        self.exchange = GradientExchange(task.model, task.world)
        self.adam = make_optimizer(task.model, task.config)
        self.update, self.tokens, self.times, self.waits = 0, [], [], []

    def step(self):
        started, tokens = time.perf_counter(), 0
        parts = self.losses(self.update)
        self.waits.append(time.perf_counter() - started)
        for number, compute in enumerate(parts, 1):
            loss, count = compute()
            self.exchange.backward(loss, is_last=number == len(parts))
            tokens += count
        nn.utils.clip_grad_norm_(self.task.model.parameters(), self.task.config.clip_norm)
        self.adam.step()
        self.adam.zero_grad()
        if self.task.world.device.type == "cuda":
            torch.cuda.synchronize()
        self.times.append(time.perf_counter() - started)
        self.tokens.append(tokens)
        self.update += 1

    def speed(self):
        """Return the tokens per second of the median step; the first step is a warm-up."""
        return statistics.median(n / t for n, t in zip(self.tokens[1:], self.times[1:], strict=True))


def beside_baseline(settings, data, world, seconds, baseline_texts):
    """Measure simllm and the baseline in turns, until each has run for `seconds`."""
    tasks = [PretrainingTask(settings, data, data, world) for _ in range(2)]
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
    rows = tasks[0]._prepare_batches(0)[0]
    real = sum(int(batch.shape.sum() + batch.shape[:, 1].sum()) for batch in rows)
    padding = [1 - real / sum(len(batch.tokens) for batch in rows), statistics.mean(plain.paddings)]
    peak = peak_flops(world.device, settings.precision)
    return {
        name: {
            "tokens_per_second": round(stepper.speed()),
            "mfu": round(stepper.speed() * tasks[0].flops_per_token / peak, 3),
            "peak_memory_mb": round(memory[i] / 1e6),
            "padding": round(padding[i], 4),
            "waiting": round(sum(stepper.waits[1:]) / sum(stepper.times[1:]), 4),
            "steps": len(stepper.times),
        }
        for i, (name, stepper) in enumerate(zip(("simllm", "plain"), steppers, strict=True))
    } | {"ratio": round(steppers[0].speed() / steppers[1].speed(), 2), "peak_flops": peak}
