"""Checks and speed of a GPU, in under ten minutes.

    python -m tests.benchmarks.gpu --json gpu.json

attention  the attention on the GPU against the attention on the CPU, forward and backward, in each precision
training   the training loop in each precision; a run that is stopped and resumed
encoder    torch.compile and gradient checkpointing: steps per second, peak memory
base, mini tokens per second and MFU of pretraining, beside a plain padded baseline
scoring    pairs per second, exact and in half precision

Without a GPU, the same checks run on the CPU in a reduced form; the last line and the JSON say so. Texts are
random, so no data are needed. A check that fails does not stop the others. Exit status: 0 if all checks
passed, else 1.
"""

import argparse
import copy
import os
import sys
import tempfile
import time
import traceback
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from simllm import SimLLM
from simllm.model.network import Encoder
from simllm.model.torch_engine import TorchEngine
from tests.benchmarks import machine
from tests.benchmarks.gradient_exchange import random_shards
from tests.benchmarks.training_speed import beside_baseline
from train.pretrain.batches import PretrainingBatches
from train.pretrain.config import PretrainConfig
from train.pretrain.language_model import PermutedLanguageModel
from train.pretrain.permutation import by_position, pad_streams
from train.pretrain.task import PretrainingTask
from train.runtime import config as training_config
from train.runtime import loop
from train.runtime.distributed import World
from train.runtime.gradients import PRECISIONS, autocast
from train.runtime.signals import Stopped, StopRequest

CONFIGS = Path(__file__).parents[2] / "configs"
TOLERANCE = {"fp32": 2e-3, "bf16": 0.05, "fp16": 0.02}  # of losses and gradients, relative to their norms
TARGETS = {"mfu": 0.45, "ratio": 5.0, "pairs_per_second": 40_000}
REDUCED = {
    "base": ["model.num_hidden_layers=2", "model.vocab_size=2000", "batch_tokens=512", "accumulation=1"],
    "mini": ["model.num_hidden_layers=2", "model.vocab_size=800", "batch_tokens=512"],
}
REDUCED["mini"] += ["model.hidden_size=64", "model.intermediate_size=128", "model.num_attention_heads=2"]
REDUCED["base"] += ["model.hidden_size=96", "model.intermediate_size=192", "model.num_attention_heads=3"]
FULL = {"base": [], "mini": ["batch_tokens=65536"]}  # small batches cannot fill a GPU


class Checks:
    """The checks and measurements on one device, a GPU or a CPU.

    Args:
        device: The device.
        seconds: Seconds for each measurement of speed.
    """

    def __init__(self, device, seconds):
        self.world, self.seconds = World(device=device), seconds
        self.on_gpu = device.type == "cuda"

    def settings(self, name, *more):
        """Return the configuration `name`: in full size on a GPU, in reduced size on a CPU."""
        sizes = FULL[name] if self.on_gpu else REDUCED[name]
        return training_config.load(PretrainConfig, CONFIGS / f"{name}.yaml", ["out=none", *sizes, *more])

    def data(self, settings):
        """Return texts of random tokens that are about as long as comments."""
        return random_shards(settings.model, texts=200_000 if self.on_gpu else 2_000, longest=48)

    def attention(self):
        """Compare two encoder layers on the GPU with a CPU: the loss and its gradients in each precision."""
        settings, tokens = self.settings("base"), 4096 if self.on_gpu else 512
        config = replace(settings.model, num_hidden_layers=2, hidden_dropout_prob=0.0)
        batches = PretrainingBatches(self.data(settings), config.vocab_size, 0.15, tokens, seed=1)
        batch = batches.make_batch(*batches.texts_of_update(0, 1)[0])
        torch.manual_seed(0)
        model = PermutedLanguageModel(Encoder(config))
        expected = self._gradients(model, batch, "fp32")
        total = sum(float(gradient.norm()) ** 2 for gradient in expected.values()) ** 0.5
        model.to(self.world.device)
        if self.on_gpu:
            from train.pretrain.gpu_attention import BLOCK_SIZE, fused_attention

            batch, model.make_attention = pad_streams(by_position(batch), BLOCK_SIZE), fused_attention
            for layer in model.encoder.layers:
                layer.compile(dynamic=False)
        batch, result = batch.to(self.world.device), {}
        for precision in PRECISIONS:
            found = self._gradients(model, batch, precision)
            errors = {  # the gradients of some biases are nearly 0
                name: float((found[name] - values).norm() / max(float(values.norm()), 0.01 * total))
                for name, values in expected.items()
            }
            result[precision] = {
                "loss": errors.pop("loss"),
                "gradient": max(errors.values()),
                "gradient_of": max(errors, key=errors.get),
            }
        for precision, row in result.items():
            assert max(row["loss"], row["gradient"]) < TOLERANCE[precision], result
        return result

    def _gradients(self, model, batch, precision):
        """Return the mean loss over the predicted tokens and its gradients, as tensors on the CPU."""
        model.train()
        model.zero_grad()
        device = next(model.encoder.parameters()).device.type
        scale = 1024 if precision == "fp16" else 1  # small gradients underflow in float16
        with torch.autocast(device, PRECISIONS[precision], enabled=precision != "fp32"):
            loss = model(batch) / int((batch.targets != model.encoder.config.pad_token_id).sum())
        (scale * loss).backward()
        found = {name: p.grad.float().cpu() / scale for name, p in model.named_parameters()}
        return found | {"loss": loss.detach().float().cpu()}

    def training(self):
        """Train in each precision, and stop and resume a run in bfloat16; check that the results agree."""
        with tempfile.TemporaryDirectory() as folder:
            runs = {name: self._train(Path(folder) / name, name) for name in PRECISIONS}
            resumed = self._train(Path(folder) / "resumed", "bf16", stop_after=2)
        runs["resumed bf16"] = resumed
        perplexities = {name: lines[-1]["test_perplexity"] for name, (_, lines) in runs.items()}
        pairs = [(runs["bf16"][0][key], value) for key, value in resumed[0].items()]
        difference = max(float((a.float() - b.float()).abs().max()) for a, b in pairs)
        result = {
            "perplexity": perplexities,
            "skipped_in_fp16": runs["fp16"][1][-1]["skipped"],
            "difference_after_resuming": difference,
            "bit_identical_after_resuming": all(torch.equal(a, b) for a, b in pairs),
        }
        for value in perplexities.values():
            assert abs(value / perplexities["fp32"] - 1) < 0.05, result
        # Rounding on GPUs may move weights whose gradient is nearly 0, but not the perplexity.
        assert abs(perplexities["resumed bf16"] / perplexities["bf16"] - 1) < 0.01, result
        return result

    def _train(self, out, precision, stop_after=None):
        """Train in a folder; return the weights and the lines of the log.

        If `stop_after` is given, the run is stopped after this update, and resumed.
        """
        settings = self.settings(
            "mini", f"out={out}", f"precision={precision}", "token_vectors=random", "warmup_updates=4",
            f"updates={40 if self.on_gpu else 6}", "evaluate_every=2", "test_texts=50",
        )  # fmt: skip
        data, lines = self.data(settings), []

        def run(stop):
            def log(line):
                lines.append(line)
                stop.requested = line["update"] == stop_after

            torch.manual_seed(0)
            task = PretrainingTask(settings, data, data, self.world)
            batches, _ = task._prepare_batches(0)
            assert not self.on_gpu or all(batch.tokens.is_pinned() for batch in batches)
            loop.train(settings, task, self.world, stop, "run", log, lambda *_: None)
            return {name: value.cpu() for name, value in task.model.state_dict().items()}

        try:
            weights = run(StopRequest())
        except Stopped:
            stop_after = None
            weights = run(StopRequest())
        return weights, lines

    def encoder(self):
        """Measure training steps of an encoder: plain, with gradient checkpointing, and compiled on a GPU."""
        settings, result = self.settings("base"), {}
        size = (256, 32) if self.on_gpu else (8, 16)
        tokens = torch.randint(5, settings.model.vocab_size, size, device=self.world.device)
        options = [("plain", {}), ("gradient_checkpointing", {"gradient_checkpointing": True})]
        options += [("compile", {"compile": True})] if self.on_gpu else []
        for name, keys in options:
            torch.manual_seed(0)
            encoder = Encoder(settings.model).to(self.world.device)
            loop.set_up_encoders(encoder, replace(settings, **keys))

            def step(encoder=encoder):
                with autocast(self.world.device, settings.precision):
                    encoder(tokens).float().square().mean().backward()
                return float(encoder.embeddings.token.weight.grad.sum())  # waits for the GPU

            step()
            with machine.PeakMemory(self.world.device) as memory:
                step()
            times = []
            while sum(times) < self.seconds / 5:
                started = time.perf_counter()
                step()
                times.append(time.perf_counter() - started)
            rate = round(1 / float(np.median(times)), 2)
            result[name] = {"steps_per_second": rate, "peak_memory_mb": round(memory.peak / 1e6)}
        return result

    def base(self):
        """Measure the speed and the memory of pretraining with `configs/base.yaml`."""
        return self._speed("base")

    def mini(self):
        """Measure pretraining with `configs/mini.yaml`."""
        return self._speed("mini")

    def _speed(self, name):
        settings = self.settings(name)
        plain_texts = 32 if self.on_gpu else 4
        result = beside_baseline(settings, self.data(settings), self.world, self.seconds, plain_texts)
        return result | {"overrides": FULL[name] if self.on_gpu else REDUCED[name]}

    def scoring(self):
        """Measure how many random pairs of about 20 tokens the included model scores in a second."""
        device, random = str(self.world.device), np.random.default_rng(0)
        count = 50_000 if self.on_gpu else 50
        words = "adds two lists and returns the number of elements which are in a file of given name".split()
        made = [" ".join(random.choice(words, 14)) + f" {n}" for n in range(2 * count)]
        exact = SimLLM(mode="exact", device=device)
        ways = {"exact": exact, "bf16": SimLLM(mode="fast", device=device)}
        if self.on_gpu:  # CPUs compute slowly in float16
            ways["fp16"] = half = SimLLM(mode="exact", device=device)
            head = half.engine.meaning_head
            half.engine = TorchEngine(copy.deepcopy(half.engine.encoder).half())
            half.engine.use_head(head and copy.deepcopy(head).half())
        result, scores = {}, {}
        for name, metric in ways.items():
            metric.score(made[:100], made[:100])
            with machine.PeakMemory(self.world.device) as memory:
                started = time.perf_counter()
                scores[name] = metric.score(made[:count], made[count:]).values
                seconds = time.perf_counter() - started
            result[name] = {
                "pairs_per_second": round(count / seconds),
                "largest_difference": float(np.abs(scores[name] - scores["exact"]).max()),
                "peak_memory_mb": round(memory.peak / 1e6),
            }
        for row in result.values():
            assert row["largest_difference"] < 0.05, result
        return result


def compare_with_targets(results):
    """Return the measured figures that have targets, their targets, and whether these are reached."""
    found = {}
    if "error" not in results.get("base", {"error": ""}):
        found["mfu"] = results["base"]["simllm"]["mfu"]
        found["ratio"] = results["base"]["ratio"]
    if "error" not in results.get("scoring", {"error": ""}):
        found["pairs_per_second"] = max(row["pairs_per_second"] for row in results["scoring"].values())
    return {
        name: {"measured": value, "target": TARGETS[name], "reached": value >= TARGETS[name]}
        for name, value in found.items()
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ["attention", "training", "encoder", "base", "mini", "scoring"]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="the checks to run")
    parser.add_argument("--cpu", action="store_true", help="the reduced form, although there is a GPU")
    parser.add_argument("--seconds", type=float, help="for each measurement of speed (20; reduced: 0.5)")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    if options.json and not os.access(options.json.absolute().parent, os.W_OK):
        parser.error(f"--json {options.json}: its folder is missing or cannot be written")
    device = torch.device("cuda", 0) if torch.cuda.is_available() and not options.cpu else torch.device("cpu")
    checks = Checks(device, options.seconds or (20 if device.type == "cuda" else 0.5))
    started, results = time.perf_counter(), {}
    for name in options.only:
        begun = time.perf_counter()
        try:
            results[name] = getattr(checks, name)()
        except Exception as error:  # the other checks are worth running
            traceback.print_exc()
            results[name] = {"error": f"{type(error).__name__}: {error}"}
        results[name]["check_seconds"] = round(time.perf_counter() - begun, 1)
        print(name, results[name], flush=True)
        if device.type == "cuda":
            torch.cuda.empty_cache()
    if device.type == "cuda":
        results["targets"] = compare_with_targets(results)
        print("targets", results["targets"])
    failed = [name for name in options.only if "error" in results[name]]
    is_reduced = device.type != "cuda"
    if options.json:
        results |= {"device": str(device), "reduced": is_reduced, "failed": failed}
        results |= {"gpu": None} if is_reduced else {}
        machine.write(options.json, seconds=round(time.perf_counter() - started, 1), **results)
    form = " in the reduced form, without a GPU" if is_reduced else ""
    print(f"failed{form}: {', '.join(failed)}" if failed else f"all checks passed{form}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
