"""Checks and speed of a GPU: a core of about five minutes, and more.

    python -m tests.benchmarks.gpu --json gpu.json
    python -m tests.benchmarks.gpu --parts all --json gpu.json

The core:

attention  a pretraining update on the GPU, compiled, against one on the CPU, in each precision
base       tokens per second and MFU of pretraining, beside padded documents; compilation is not counted
scoring    pairs per second, exact and in half precision
scores     the included model against its golden scores and the CPU; the scores of each precision
updates    an update of distillation, contrastive stage and masked pretraining against the CPU; checkpointing
run        the command `train.pretrain` for a minute, stopped by a signal and resumed

More: `training` (the loop in each precision, stopped and resumed), `encoder` (compilation and checkpointing:
speed and memory) and `mini` (as `base`).

Each part runs in a process of its own, which ends after its limit. The figures are written after each part.
Without a GPU, the same parts run on the CPU in a reduced form; the last line and the JSON say so. Exit
status: 0 if all parts passed, else 1.
"""

import argparse
import copy
import gzip
import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from simllm import SimLLM
from simllm.analysis import golden_scores
from simllm.metric import default_model
from simllm.model.network import Encoder
from simllm.model.torch_engine import TorchEngine
from tests.benchmarks import machine
from tests.benchmarks.gradient_exchange import random_shards
from tests.benchmarks.training_speed import beside_baseline
from train.contrastive.__main__ import load_or_compute_targets
from train.contrastive.config import ContrastiveConfig
from train.contrastive.task import ContrastiveTask
from train.corpus import config as corpus_config
from train.distill import teachers
from train.distill.__main__ import prepare
from train.distill.config import DistillConfig
from train.pretrain import masked
from train.pretrain.config import PretrainConfig
from train.pretrain.task import PretrainingTask
from train.runtime import config as training_config
from train.runtime import loop
from train.runtime.distributed import World
from train.runtime.gradients import PRECISIONS, autocast
from train.runtime.log import read_log
from train.runtime.signals import STOPPED_BY_SIGNAL, Stopped, StopRequest

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "configs"
ITEMS = ROOT / "train" / "contrastive" / "items"
CPU = World(device=torch.device("cpu"))
TOLERANCE = {"fp32": 2e-3, "bf16": 0.05, "fp16": 0.02}  # of losses and gradients, relative to their norms
TF32 = {"fp32": 0.01}  # as training multiplies float32 on a GPU
TARGETS = {"mfu": 0.45, "ratio": 5.0, "pairs_per_second": 40_000}
# The parts, and the seconds after which each is ended.
CORE = {"attention": 120, "base": 120, "scoring": 60, "scores": 60, "updates": 120, "run": 180}
MORE = {"training": 300, "encoder": 150, "mini": 150}
REDUCED = {
    "base": ["model.num_hidden_layers=2", "model.vocab_size=2000", "batch_tokens=512", "accumulation=1"],
    "mini": ["model.num_hidden_layers=2", "model.vocab_size=800", "batch_tokens=512"],
}
REDUCED["mini"] += ["model.hidden_size=64", "model.intermediate_size=128", "model.num_attention_heads=2"]
REDUCED["base"] += ["model.hidden_size=96", "model.intermediate_size=192", "model.num_attention_heads=3"]
FULL = {"base": [], "mini": ["batch_tokens=65536"]}  # small batches cannot fill a GPU


def item_texts():
    """Return the texts of the items that come with the training: a hundred thousand or so."""
    found = {}
    for file in sorted(ITEMS.glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                found |= dict.fromkeys([row["text"], *row["same"], *(text for _, text in row["different"])])
    return [text for text in found if text.isascii()]


def write_corpus(folder, texts):
    """Write texts as a finished corpus, which needs none of the packages that build one."""
    folder.mkdir()
    lines = [" ".join(text.lower().split()) + "\n" for text in texts]
    (folder / corpus_config.TRAIN).write_text("".join(lines[len(lines) // 10 :]))
    (folder / corpus_config.TEST).write_text("".join(lines[: len(lines) // 10]))
    for name in (corpus_config.COMMENTS, corpus_config.PAIRS):
        (folder / name).touch()
    facts = {"config": {"test_share": 0.1}, "sha256": f"{len(lines):012}", "excluded_sha256": ""}
    facts |= {"counts": {"texts": len(lines)}, "comments_left_out": {}, "files": {}}
    (folder / corpus_config.FACTS).write_text(json.dumps(facts))
    return folder


def one_update(task, scale=1):
    """Return the loss of a task's first update and its gradients, as tensors on the CPU."""
    task.model.train()
    task.model.zero_grad()
    loss = 0.0
    for compute in task.losses(0):
        part, _ = compute()
        (scale * part).backward()
        loss += float(part.detach())
    gradients = {name: p.grad for name, p in task.model.named_parameters() if p.grad is not None}
    found = {name: gradient.float().cpu() / scale for name, gradient in gradients.items()}
    return found | {"loss": torch.tensor(loss)}


def differences(expected, found):
    """Return by how much loss and gradients differ, relative to their norms; and whose gradient does most."""
    total = sum(float(gradient.norm()) ** 2 for name, gradient in expected.items() if name != "loss") ** 0.5
    assert expected.keys() == found.keys()
    errors = {  # the gradients of some biases are nearly 0
        name: float((found[name] - values).norm() / max(float(values.norm()), 0.01 * total))
        for name, values in expected.items()
        if name != "loss"
    }
    loss = abs(float(found["loss"] / expected["loss"]) - 1)
    worst = max(errors, key=lambda name: (math.isnan(errors[name]), errors[name]))  # NaN is the worst
    return {"loss": loss, "gradient": errors[worst], "gradient_of": worst}


def assert_close(rows, tolerance):
    """Check rows of `differences`; a difference that is no number fails."""
    for name, row in rows.items():
        assert all(row[kind] < tolerance(name) for kind in ("loss", "gradient")), f"{name}: {rows}"


def assert_below(row, limits):
    """Check that figures are below their limits; one that is no number fails."""
    for name, limit in limits.items():  # one by one: `max` may skip NaN
        assert row[name] < limit, f"{name}: expected less than {limit}: {row}"


class Checks:
    """The parts of the acceptance on one device, a GPU or a CPU.

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
        return random_shards(settings.model, 200_000 if self.on_gpu else 2_000, like_comments=True)

    def attention(self):
        """Compare an update of pretraining on the GPU with the CPU: loss and gradients in each precision."""
        small = [
            "model.num_hidden_layers=2",
            "model.hidden_dropout_prob=0",
            "accumulation=1",
            "test_texts=50",
        ]
        settings = self.settings("base", *small, f"batch_tokens={4096 if self.on_gpu else 512}")
        data = random_shards(settings.model, 2_000, like_comments=True)
        expected = one_update(PretrainingTask(replace(settings, precision="fp32"), data, data, CPU))
        task, result = PretrainingTask(settings, data, data, self.world), {}
        if self.on_gpu:
            torch.set_float32_matmul_precision("high")  # as `join_processes` does
        tolerance = TOLERANCE | (TF32 if self.on_gpu else {})
        for precision in PRECISIONS:
            task.config = replace(settings, precision=precision)
            scale = 1024 if precision == "fp16" else 1  # small gradients underflow in float16
            result[precision] = differences(expected, one_update(task, scale))
        assert_close(result, tolerance.get)
        return result

    def scores(self):
        """Compare the scores of the included model with its golden scores, and those of the CPU."""
        texts = item_texts()[: 2_000 if self.on_gpu else 100]
        pairs = texts[::2], texts[1::2]
        warnings.simplefilter("ignore")  # the golden pairs have empty and long texts on purpose
        exact, fast = (SimLLM(mode=mode, device=str(self.world.device)) for mode in ("exact", "fast"))
        expected, found = SimLLM(mode="exact", device="cpu").score(*pairs), exact.score(*pairs)
        result = {
            "golden": golden_scores.largest_difference(exact, default_model()),
            "cpu": float(np.abs(found.values - expected.values).max()),
            "cpu_same": float(np.abs(found.same - expected.same).max()),
            "fast": float(np.abs(fast.score(*pairs).values - expected.values).max()),
            "pairs": len(pairs[0]),
        }
        assert_below(result, {"golden": 1e-4, "cpu": 1e-4, "cpu_same": 1e-3, "fast": 0.02})
        return result

    def updates(self):
        """Compare an update of each other stage with the CPU, and gradient checkpointing with none."""
        with tempfile.TemporaryDirectory() as name:
            folder, result = Path(name), {}
            texts = [text for text in item_texts() if 3 < text.count(" ") < 20]
            texts = texts[: 800 if self.on_gpu else 60]
            (folder / "texts.txt").write_text("".join(f"{text}\n" for text in texts))
            rows = [{"a": a, "b": b, "score": i % 6} for i, (a, b) in enumerate(pairwise(texts[:60]))]
            (folder / "rated.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            for stage in ("distillation", "contrastive", "masked"):
                make = getattr(self, f"_{stage}_task")
                expected = one_update(make(folder, CPU))
                # The embeddings of the teacher are those of the first task: they are stored in the folder.
                result[stage] = differences(expected, one_update(make(folder, self.world)))
        assert_close(result, lambda stage: 10 * TOLERANCE["fp32"])
        cosines = self._teacher_cosines(texts)
        assert cosines > 0.99, cosines
        small = ["accumulation=1", "model.num_hidden_layers=2", "model.hidden_dropout_prob=0"]
        settings = self.settings("base", *small, "test_texts=50")
        task = PretrainingTask(settings, *2 * [self.data(settings)], self.world)
        expected = one_update(task)
        loop.set_up_encoders(task.model, replace(settings, gradient_checkpointing=True))
        checkpointed = {"checkpointing": differences(expected, one_update(task))}
        assert_close(checkpointed, lambda _: TOLERANCE["bf16"])
        return result | checkpointed | {"lowest_cosine_of_teachers": cosines}

    def _teacher_cosines(self, texts):
        """Return the lowest cosine of a text's embeddings by a teacher on the GPU and on the CPU."""
        first, second = (teachers.load(default_model(), world.device)(texts) for world in (CPU, self.world))
        return float(torch.cosine_similarity(*map(torch.from_numpy, (first, second))).min())

    def _distillation_task(self, folder, world):
        """Prepare a distillation of the included model, from texts to the student."""
        values = [f"texts=[{{source: {folder}/texts.txt}}]", "exclude=[]", f"dev=[{folder}/rated.jsonl]"]
        values += [f"teachers=[{default_model()}]", "start=null", f"groups={64 if self.on_gpu else 16}"]
        values += ["model.vocab_size=400", "model.num_hidden_layers=2", f"out={folder}/distilled"]
        values += ["precision=fp32"]
        return prepare(training_config.load(DistillConfig, CONFIGS / "distill.yaml", values), world)[0]

    def _contrastive_task(self, folder, world):
        """Make a contrastive task with meaning head and imitation, of the included model."""
        pairs = 32 if self.on_gpu else 6
        items = f"source: {ITEMS}/method_summaries.jsonl.gz, items: true, share: 1"
        rated = f"{{sources: [{folder}/rated.jsonl], fields: [a, b, score], pairs: {pairs}, weight: 1}}"
        imitation = {"texts": [{"source": f"{folder}/texts.txt"}], "teachers": [str(default_model())]}
        imitation |= {"groups": pairs, "cosine_weight": 1, "similarity_weight": 1}
        head = "head: {width: 192, layers: 2, heads: 4, encoder_layers: 4}"
        values = [f"model={default_model()}", f"positives=[{{{items}, hard_negatives: 2}}]", "overlap=null"]
        values += [
            f"meaning={{{head}, sources: [{{{items}}}], pairs: {pairs}, weight: 1}}",
            f"rated=[{rated}]",
        ]
        values += ["exclude=[]", f"dev=[{folder}/rated.jsonl]", f"dev_comments={folder}/texts.txt"]
        values += [f"pairs={pairs}", "precision=fp32", f"out={folder}/contrastive"]
        values += [f"imitation={json.dumps(imitation)}", "chunk_tokens=65536"]
        config = training_config.load(ContrastiveConfig, CONFIGS / "contrastive.yaml", values)
        return ContrastiveTask(config, world, load_or_compute_targets(config, world))

    def _masked_task(self, folder, world):
        """Make a task of masked pretraining with the included model, as transformers loads it."""
        values = [f"model={default_model()}", "precision=fp32", "test_texts=50"]
        values += [f"batch_tokens={2048 if self.on_gpu else 256}", "accumulation=1", "out=none"]
        config = training_config.load(masked.MaskedConfig, CONFIGS / "masked.yaml", values)
        torch.manual_seed(0)  # the output layers are new
        model, tokenizer = masked.load(Path(config.model))
        data = masked.tokenize(folder / "texts.txt", tokenizer, config.max_length)
        return masked.MaskedTask(config, model, tokenizer, data, data, world)

    def run(self):
        """Run the command `train.pretrain` with real texts: stop it by a signal, resume it, stop it again."""
        texts = item_texts()[: 100_000 if self.on_gpu else 3_000]
        seconds = 25 if self.on_gpu else 2 * self.seconds
        with tempfile.TemporaryDirectory() as name:
            folder, result = Path(name), {}
            corpus, out = write_corpus(folder / "corpus", texts), folder / "run"
            sizes = FULL["mini"] if self.on_gpu else [*REDUCED["mini"], "precision=fp32"]
            values = ["model.vocab_size=4000" if self.on_gpu else "model.vocab_size=600", "test_texts=500"]
            values += [f"evaluate_every={100 if self.on_gpu else 5}", "updates=100000", f"out={out}"]
            values += [f"corpus={{sources: [{corpus}], test_share: 0.1}}", "warmup_updates=100"]
            command = [sys.executable, "-m", "train.pretrain", str(CONFIGS / "mini.yaml"), *sizes, *values]
            for attempt in ("first", "resumed"):
                before = _logged(out)
                started = time.perf_counter()
                process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
                while len(_logged(out)) < len(before) + 1 and process.poll() is None:
                    time.sleep(0.05)
                until_trained = time.perf_counter() - started
                while time.perf_counter() - started < until_trained + seconds and process.poll() is None:
                    time.sleep(0.05)
                process.send_signal(signal.SIGTERM)
                errors = process.communicate(timeout=60)[1]
                assert process.returncode == STOPPED_BY_SIGNAL, errors[-2000:]
                lines = _logged(out)[len(before) :]
                result[attempt] = {
                    "seconds_until_evaluation": round(until_trained, 1),
                    "updates": [lines[0]["update"], lines[-1]["update"]],
                    "perplexity": [lines[0]["test_perplexity"], lines[-1]["test_perplexity"]],
                    "tokens_per_second": lines[-1]["tokens_per_second"],
                    "mfu": lines[-1]["mfu"],
                    "resumed": "resuming after update" in errors,
                }
        assert [result[attempt]["resumed"] for attempt in ("first", "resumed")] == [False, True], result
        assert result["resumed"]["updates"][0] > result["first"]["updates"][1], result
        assert result["resumed"]["perplexity"][1] < result["first"]["perplexity"][0], result
        return result

    def base(self):
        """Measure the speed and the memory of pretraining with `configs/base.yaml`."""
        return self._speed("base")

    def mini(self):
        """Measure pretraining with `configs/mini.yaml`."""
        return self._speed("mini")

    def _speed(self, name):
        settings = self.settings(name)
        texts = 256 if self.on_gpu else 4  # in a batch of the baseline: 20,000 tokens, padding included
        result = beside_baseline(settings, self.data(settings), self.world, self.seconds, texts)
        return result | {"overrides": FULL[name] if self.on_gpu else REDUCED[name], "baseline_texts": texts}

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
            # The whole input once before: the first call of each shape chooses its kernels.
            metric.score(made[:count], made[count:])
            with machine.PeakMemory(self.world.device) as memory:
                started = time.perf_counter()
                scores[name] = metric.score(made[:count], made[count:]).values
                seconds = time.perf_counter() - started
            started = time.perf_counter()
            metric.tokenize_pairs(made)
            result[name] = {
                "pairs_per_second": round(count / seconds),
                "seconds_of_tokenizing": round(time.perf_counter() - started, 3),
                "seconds": round(seconds, 3),
                "largest_difference": float(np.abs(scores[name] - scores["exact"]).max()),
                "peak_memory_mb": round(memory.peak / 1e6),
            }
        for row in result.values():
            assert row["largest_difference"] < 0.05, result
        return result

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
            f"updates={40 if self.on_gpu else 4}", "evaluate_every=2", "test_texts=50",
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


def _logged(out):
    """Return the lines in the log of a run, so far."""
    return [json.loads(line) for _, line in read_log(out / "log.jsonl")[0]]


def compare_with_targets(results):
    """Return the measured figures that have targets, their targets, and whether these are reached."""
    found = {}
    if "error" not in results.get("base", {"error": ""}):
        found["mfu"] = results["base"]["simllm"]["mfu"]
        found["ratio"] = results["base"]["ratio"]
    if "error" not in results.get("scoring", {"error": ""}):
        rows = results["scoring"].values()
        found["pairs_per_second"] = max(row["pairs_per_second"] for row in rows if isinstance(row, dict))
    return {
        name: {"measured": value, "target": TARGETS[name], "reached": value >= TARGETS[name]}
        for name, value in found.items()
    }


def _work(connection, name, cpu, seconds):
    """Run one part in a child process, and send its figures, with a description of the machine."""
    os.setpgid(0, 0)
    # simllm gives a forked child one thread, because it may have taken over locks of its parent's threads.
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0))))
    try:
        on_gpu = torch.cuda.is_available() and not cpu
        device = torch.device("cuda", 0) if on_gpu else torch.device("cpu")
        if name not in ("scores", "scoring"):
            torch.backends.cuda.enable_cudnn_sdp(False)  # as `join_processes` does
        facts = machine.facts() | {"device": str(device), "reduced": not on_gpu}
        facts |= {} if on_gpu else {"gpu": None}
        connection.send(("facts", facts))
        connection.send(("result", getattr(Checks(device, seconds or (10 if on_gpu else 0.5)), name)()))
    except Exception as error:
        traceback.print_exc()
        connection.send(("result", {"error": f"{type(error).__name__}: {error}"[:3000]}))


@contextmanager
def _killed_at_end(process):
    """Kill a process at the end of the `with` block, with all that it has started."""
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()  # it may not yet have a group of its own
        process.join()


def measure(name, left, cpu, seconds):
    """Run one part in a process that ends after its limit, or `left` seconds; return facts and figures."""
    # The parent must not use CUDA before it forks, and does not; the child need not import anything again.
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, name, cpu, seconds))
    begun, found, limit = time.perf_counter(), {}, min((CORE | MORE)[name], left)
    process.start()
    sender.close()
    with _killed_at_end(process):
        while "result" not in found:
            try:
                if not receiver.poll(max(0, begun + limit - time.perf_counter())):
                    found["result"] = {"error": f"ended after its limit of {limit:.0f} s"}
                    break
                kind, value = receiver.recv()
                found[kind] = value
                if kind == "facts" and value["reduced"]:
                    limit = left  # the limits are for a GPU, which costs money
            except EOFError:
                process.join()
                found["result"] = {"error": f"its process ended with status {process.exitcode}"}
    found["result"]["check_seconds"] = round(time.perf_counter() - begun, 1)
    return found.get("facts", {}), found["result"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*CORE, *MORE]
    parser.add_argument(
        "--parts", nargs="+", choices=[*names, "all"], default=[*CORE], help="the core, unless given"
    )
    parser.add_argument("--cpu", action="store_true", help="the reduced form, although there is a GPU")
    parser.add_argument("--seconds", type=float, help="for each measurement of speed (10; reduced: 0.5)")
    parser.add_argument("--limit", type=float, help="seconds after which the rest is left out")
    parser.add_argument("--json", type=Path, help="write the figures there, after each part")
    options = parser.parse_args()
    if options.json and not os.access(options.json.absolute().parent, os.W_OK):
        parser.error(f"--json {options.json}: its folder is missing or cannot be written")
    parts = names if "all" in options.parts else options.parts
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped by a signal"))  # and ends what it has started
    started, results, facts = time.perf_counter(), {}, {}
    for name in parts:
        left = (86400 if options.limit is None else options.limit) - (time.perf_counter() - started)
        if left <= 0:
            results[name] = {"error": "left out, because the time was up"}
        else:
            found, results[name] = measure(name, left, options.cpu, options.seconds)
            facts = found or facts
        print(name, results[name], flush=True)
        failed = [name for name, row in results.items() if "error" in row]
        targets = {"targets": compare_with_targets(results)} if not facts.get("reduced", True) else {}
        if options.json:
            whole = facts | {"seconds": round(time.perf_counter() - started, 1)} | results | targets
            whole |= {"failed": failed, "missing": [part for part in parts if part not in results]}
            partial = options.json.with_name(options.json.name + ".partial")
            partial.write_text(json.dumps(whole, indent=2) + "\n")
            partial.replace(options.json)
    if targets:
        print("targets", targets["targets"])
    form = " in the reduced form, without a GPU" if facts.get("reduced") else ""
    print(f"failed{form}: {', '.join(failed)}" if failed else f"all checks passed{form}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
