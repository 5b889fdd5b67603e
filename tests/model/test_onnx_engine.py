"""The engine of ONNX Runtime: the scores of torch, for networks of all shapes, also without torch."""

import json
import multiprocessing
import os
import subprocess
import sys
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from simllm import InputError, SimLLM
from simllm.metrics.interface import Example
from simllm.model import saved_model
from simllm.model.config import MAX_DISTANCE, HeadConfig, ModelConfig, distance_buckets
from simllm.model.network import Encoder, MeaningHead, RelativeBias
from simllm.model.onnx_engine import encoder_graph, head_graph
from tests.conftest import ROOT

LONG = "opens the file and reads every line. Then it closes the file, and deletes it."


def both(folder, **options):
    """Return the metric of a folder with torch and with ONNX Runtime."""
    return [SimLLM(folder, engine=engine, **options) for engine in ("torch", "onnxruntime")]


def largest_difference(metrics, candidates, references):
    found = [metric.score(candidates, references) for metric in metrics]
    assert found[0].same is None or np.abs(found[0].same - found[1].same).max() < 1e-5
    assert found[0].graded is None or np.abs(found[0].graded - found[1].graded).max() < 1e-5
    return np.abs(found[0].values - found[1].values).max()


@pytest.mark.parametrize("folder", ["model_folder", "head_folder", "graded_folder"])
@pytest.mark.filterwarnings("ignore:.*(texts|pairs)")
def test_scores_are_those_of_torch(folder, request, comments):
    metrics = both(request.getfixturevalue(folder), device="cpu")
    candidates = [*comments[:200], LONG, "", " ".join(comments[:9]), "adds two lists"]
    references = [*comments[1:201], "closes the file", "a", LONG, "adds two lists"]
    assert largest_difference(metrics, candidates, references) < 1e-5
    assert metrics[1].signature == metrics[0].signature.replace("float32|", "float32|engine:onnxruntime|")


@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "cls", "similarity": "inverse-euclidean"},
        {"pooling": "max", "on_long": "window", "prior": 0.1},
        {"similarity": "f1"},
    ],
)
@pytest.mark.filterwarnings("ignore:.*texts")
def test_scores_with_other_options_are_those_of_torch(graded_folder, comments, options):
    candidates, references = [*comments[:40], " ".join(comments[:9])], comments[1:42]
    assert largest_difference(both(graded_folder, **options), candidates, references) < 1e-5


def test_pairs_with_the_included_model(comments):
    metrics = both(None, device="cpu")
    assert largest_difference(metrics, comments[:100], comments[700:800]) < 1e-4


shapes = st.builds(
    lambda heads, width, layers, buckets, longest: ModelConfig(
        vocab_size=60,
        hidden_size=heads * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=heads * width + 3,
        max_position_embeddings=longest,
        relative_attention_num_buckets=buckets,
        initializer_range=0.3,
        layer_norm_eps=1e-3,
    ),
    st.integers(1, 3), st.integers(8, 12), st.integers(1, 3), st.integers(4, 40), st.integers(5, 300),
)  # fmt: skip


@given(shapes, st.integers(1, 3), st.booleans())
def test_the_shapes_of_all_weights_are_those_of_the_networks(config, layers, graded):
    head = HeadConfig(8, layers, 2, min(layers, config.num_hidden_layers), graded)
    for network, expected in (
        (Encoder(config), config.weight_shapes),
        (MeaningHead(head, config), head.weight_shapes(config)),
    ):
        assert {name: tuple(each.shape) for name, each in network.state_dict().items()} == expected


@given(st.integers(4, 511))
def test_buckets_of_distances_are_those_of_the_network(buckets):
    bias = RelativeBias(ModelConfig(relative_attention_num_buckets=buckets))
    distances = torch.arange(-1000, 1001)
    found = distance_buckets(buckets)[distances.clamp(-MAX_DISTANCE, MAX_DISTANCE).numpy() + MAX_DISTANCE]
    assert found.tolist() == bias.bucket(distances).tolist()


@settings(max_examples=5, phases=[Phase.generate])  # shrinking would take minutes
@pytest.mark.filterwarnings("ignore:.*texts")
@given(shapes, st.integers(1, 3), st.booleans(), st.integers(0, 99))
def test_random_networks_have_the_scores_of_torch(tokenizer, tmp_path_factory, config, layers, graded, seed):
    torch.manual_seed(seed)
    config = ModelConfig(**{**asdict(config), "vocab_size": tokenizer.vocab_size})
    head = MeaningHead(HeadConfig(8, layers, 2, min(layers, config.num_hidden_layers), graded), config)
    torch.nn.init.normal_(head.relative_bias.table.weight)
    folder = tmp_path_factory.mktemp("random") / "model"
    info = saved_model.ModelInfo(meaning=saved_model.MeaningInfo(head.config))
    saved_model.save(folder, Encoder(config), tokenizer, info, "", head=head)
    texts = ["adds two lists", "x", "returns the number of elements in a list of numbers", LONG]
    assert largest_difference(both(folder, on_long="window"), texts, texts[1:] + texts[:1]) < 1e-4


def test_graphs_are_valid_onnx(graded_folder):
    model = saved_model.load(graded_folder)
    for graph in (
        encoder_graph(model, with_head=True),
        head_graph(model.head_weights, model.head_config, model.config),
    ):
        onnx.checker.check_model(onnx.load_from_string(graph.to_bytes()), full_check=True)


def test_bfloat16_weights_are_read_as_torch_reads_them(model_folder, tmp_path):
    model = saved_model.load(model_folder)
    folder = tmp_path / "model"
    saved_model.save(folder, model.encoder, model.tokenizer, model.info, "", torch.bfloat16)
    stored = load_file(folder / "model.safetensors")
    for name, values in saved_model.load(folder).weights.items():
        expected = stored[saved_model.transformers_name(name)]
        assert expected.dtype == torch.bfloat16
        assert (torch.from_numpy(values) == expected.float()).all()


def test_a_weight_that_is_cut_off_is_one_line(model_folder, tmp_path):
    folder = tmp_path / "model"
    model = saved_model.load(model_folder)
    saved_model.save(folder, model.encoder, model.tokenizer, model.info, "", torch.bfloat16)
    file = folder / "model.safetensors"
    weights = load_file(file)
    weights["embeddings.LayerNorm.bias"][0] = torch.nan
    save_file(weights, file)
    with pytest.raises(InputError, match=r"embeddings\.LayerNorm\.bias holds values that are not finite"):
        saved_model.load(folder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "fast"}, r"mode 'fast': expected exact, or torch: .*pip install '\.\[torch\]'"),
        ({"device": "cuda"}, "device 'cuda': expected cpu, or torch"),
        ({"engine": "jax"}, "engine 'jax': expected one of torch, onnxruntime"),
    ],
)
def test_what_needs_torch_is_one_line(model_folder, options, message):
    with pytest.raises(InputError, match=message):
        SimLLM(model_folder, **{"engine": "onnxruntime", **options})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_scores(head_folder, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    metric = SimLLM(head_folder, engine="onnxruntime")
    expected = metric.score(["adds two lists"], [LONG]).values.tolist()
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe()
    child = context.Process(
        target=lambda: theirs.send(metric.score(["adds two lists"], [LONG]).values.tolist())
    )
    child.start()
    try:
        assert mine.poll(60)
        assert mine.recv() == expected
    finally:
        child.kill()
        child.join()


@pytest.fixture(scope="module")
def without_torch(tmp_path_factory):
    """Return a function that runs `simllm` where torch, and what is made with it, is not installed."""
    packages = tmp_path_factory.mktemp("packages")
    absent = (
        "torch",
        "functorch",
        "transformers",
        "sentence_transformers",
        "accelerate",
        "trl",
        "bert_score",
    )
    for folder in [Path(path) for path in sys.path if path.endswith("-packages")]:
        for entry in folder.iterdir():
            if not entry.name.startswith(absent) and entry.suffix != ".pth":
                (packages / entry.name).exists() or (packages / entry.name).symlink_to(entry)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{packages}"}

    def run(*words):
        # -S leaves out the packages of the interpreter.
        command = [sys.executable, "-S", "-m", "simllm", *map(str, words)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.mark.slow
def test_commands_without_torch(without_torch, comments, tmp_path):
    for name, texts in (("a", comments[:30]), ("b", comments[1:31]), ("r", comments[2:32])):
        (tmp_path / name).write_text("".join(" ".join(text.split()) + "\n" for text in texts))
    a, b, r = (tmp_path / name for name in "abr")
    pairs = tmp_path / "rated.jsonl"
    rows = [
        {"candidate": x, "reference": y, "rating": i % 5} for i, (x, y) in enumerate(pairwise(comments[:31]))
    ]
    pairs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, code_items = tmp_path / "code.py", tmp_path / "items.jsonl"
    code.write_text("def merge(first, second):\n    return first + second\n")
    item = {"candidate": "adds two lists", "code": code.read_text(), "language": "python"}
    code_items.write_text(json.dumps(item))
    done = without_torch("score", "-c", a, "-r", r, "-f", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = SimLLM().score(a.read_text().splitlines(), r.read_text().splitlines())
    assert "|engine:onnxruntime|" in found["signature"]
    assert found["mean"] == pytest.approx(expected.mean, abs=1e-4) or found["mean"] == pytest.approx(
        expected.same.mean(), abs=1e-4
    )
    done = without_torch("score", "--jsonl", code_items, "--against", "code", "-f", "json")
    assert done.returncode == 0, done.stderr
    example = Example("adds two lists", None, code.read_text(), "python")
    (row,), scores = json.loads(done.stdout)["rows"], SimLLM().score([example])
    assert row["score"] == pytest.approx(scores.values[0], abs=1e-4)
    assert row["fits"] == pytest.approx(scores.fits[0], abs=1e-4)
    for words in (
        ["explain", "adds two lists", "combines 2 arrays"],
        ["compare", "-r", r, "-c", a, b],
        ["evaluate", "correlation", "--ratings", pairs],
        ["info"],
        ["selftest"],
        ["explain", "adds two lists", "--code", code],
    ):
        done = without_torch(*words)
        assert done.returncode == 0, (words, done.stderr)
        assert done.stdout
    done = without_torch("export", "-o", tmp_path / "model.onnx")
    advice = "torch is not installed; in a checkout of simllm, run pip install '.[onnx]'"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"simllm: error: {advice}\n")
    done = without_torch("score", "a", "b", "--mode", "fast")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "simllm: error: mode 'fast': expected exact, or torch: torch is not installed"
    )
    assert done.stderr.count("\n") == 1
