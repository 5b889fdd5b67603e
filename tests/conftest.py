"""Shared fixtures: real texts and a small model, made once per test run."""

import gc
import json
import os
import signal
import sysconfig
from collections import Counter
from pathlib import Path

# On a busy machine several threads are much slower than one. Set this before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import pytest

# Fixtures import what they need: the main process of xdist has no use for torch, and its workers wait for it.

hypothesis.settings.register_profile("simllm", deadline=None)  # tests promise results, not times
hypothesis.settings.load_profile("simllm")

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"


# Files that take longest in the slow lane, longest first. All tests of a file run in one process, so a long
# file that begins late would keep one process busy after the others have ended.
LONGEST = (
    "docs/test_blocks.py",
    "slurm/test_pretrain.py",
    "test_systems.py",
    "docs/test_examples.py",
    "slurm/test_scripts.py",
    "train/runtime/test_resume.py",
    "train/test_adapt.py",
    "train/test_gpu_session.py",
    "benchmarks/test_score.py",
    "perturb/code/proof/test_testing.py",
    "repair/test_repair_kills.py",
    "docs/test_engines.py",
    "analysis/test_sharded_scoring.py",
    "train/contrastive/test_runs.py",
    "perturb/code/java/test_rules.py",
    "train/corpus/test_ray_engine.py",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    order = {ROOT / "tests" / name: number for number, name in enumerate(LONGEST)}
    tests = Counter(item.path for item in items)
    # The rest in the order of xdist: files with many tests first.
    items.sort(key=lambda item: (order.get(item.path, len(order)), -tests[item.path]))


def pytest_sessionstart():
    # A shell without job control starts programs in the background with SIGINT ignored, which tests send.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Imports make many objects and no garbage: looking for garbage takes as long as the imports.
    gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def shared():
    """Return the folder beside the checkout with real corpora, rated pairs and reference results."""
    if not SHARED.is_dir():
        pytest.skip(f"no {SHARED}: real corpora, rated pairs and reference vectors")
    return SHARED


@pytest.fixture(scope="session")
def real_files():
    """Return a function that finds files of the real data sets; without them, the test is skipped."""
    from train.runtime.config import data_root

    folders = (SHARED / "data", ROOT / data_root())

    def find(pattern):
        for folder in folders:
            if found := sorted(folder.glob(pattern)):
                return found
        places = " or ".join(map(str, folders))
        pytest.skip(f"no {pattern} in {places}; `python -m train.data fetch` brings it")

    return find


@pytest.fixture(scope="session")
def comments():
    """Return a few thousand first paragraphs of docstrings of Python's standard library."""
    from train.corpus import source_trees
    from train.corpus.extract import extract
    from train.corpus.parts import Tally

    stdlib = Path(sysconfig.get_path("stdlib"))
    folders = ("asyncio", "email", "unittest", "xml", "logging", "multiprocessing", "importlib", "http")
    folders += ("collections", "concurrent", "ctypes", "urllib", "wsgiref")
    codes = (code for folder in folders for code in source_trees.read_folder(stdlib / folder, 0, Tally()))
    found = (comment for code in codes for comment in extract(code.data, code.language, Counter()))
    texts = [(comment.description or comment.summary).split("\n\n")[0] for comment in found]
    assert len(texts) > 1500
    return texts


@pytest.fixture(scope="session")
def sentencepiece_model(comments, tmp_path_factory):
    from simllm.text_cleaning import clean
    from train.tokens import vocabulary

    file = tmp_path_factory.mktemp("vocabulary") / "sentencepiece.model"
    vocabulary.learn((clean(text) for text in comments), 1000, file)
    return file


@pytest.fixture(scope="session")
def tokenizer(sentencepiece_model):
    from simllm.model.tokenizer import Tokenizer
    from train.tokens import vocabulary

    return Tokenizer(vocabulary.convert(sentencepiece_model))


@pytest.fixture(scope="session")
def small_config():
    from simllm.model.config import ModelConfig

    return ModelConfig(
        vocab_size=1000,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=66,
        initializer_range=0.2,  # random weights that are large enough to matter
    )


@pytest.fixture(scope="session")
def model_folder(tokenizer, small_config, tmp_path_factory):
    """Write a model folder with random weights."""
    import torch

    from simllm.model import saved_model
    from simllm.model.network import Encoder

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("models") / "small"
    saved_model.save(folder, Encoder(small_config), tokenizer, saved_model.ModelInfo(), "# A card\n")
    return folder


@pytest.fixture(scope="session")
def head_folder(model_folder, tmp_path_factory):
    """Write the model of `model_folder`, with a meaning head of random weights in addition."""
    import torch

    from simllm.model import saved_model
    from simllm.model.config import HeadConfig
    from simllm.model.network import MeaningHead

    loaded = saved_model.load(model_folder)
    torch.manual_seed(1)
    head = MeaningHead(HeadConfig(16, 2, 2, encoder_layers=2), loaded.encoder.config)
    info = saved_model.ModelInfo(meaning=saved_model.MeaningInfo(head.config))
    folder = tmp_path_factory.mktemp("models") / "with-head"
    saved_model.save(folder, loaded.encoder, loaded.tokenizer, info, "# A card\n", head=head)
    return folder


@pytest.fixture(scope="session")
def nli_folder(tmp_path_factory):
    """Write an NLI model to which a text follows from another one if it does not have more words."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper
    from tokenizers import Tokenizer as FastTokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from tokenizers.processors import TemplateProcessing

    folder = tmp_path_factory.mktemp("models") / "nli"
    (folder / "tokenizer").mkdir(parents=True)
    words = FastTokenizer(WordLevel({"[UNK]": 0}, "[UNK]"))
    words.pre_tokenizer = WhitespaceSplit()
    words.post_processor = TemplateProcessing(single="$A", pair="$A:0 $B:1", special_tokens=[])
    words.save(str(folder / "tokenizer" / "tokenizer.json"))
    inputs = ("input_ids", "attention_mask", "token_type_ids")
    numbers = {"axis": [1], "two": 2.0, "zero": 0.0, "ten": 10.0, "steep": 100.0}
    steps = [
        ("Cast", "token_type_ids", "second", {"to": TensorProto.FLOAT}),
        ("Cast", "attention_mask", "read", {"to": TensorProto.FLOAT}),
        ("ReduceSum", "second axis", "hypothesis", {}),
        ("ReduceSum", "read axis", "all", {}),
        ("Mul", "hypothesis two", "twice", {}),
        ("Sub", "twice all", "excess", {}),  # words of the hypothesis - words of the premise
        ("Relu", "excess", "more", {}),
        ("Mul", "more steep", "contradiction", {}),
        ("Mul", "more zero", "nothing", {}),
        ("Add", "nothing ten", "entailment", {}),
        ("Concat", "entailment contradiction", "logits", {"axis": 1}),
    ]
    graph = helper.make_graph(
        [helper.make_node(kind, used.split(), [made], **options) for kind, used, made, options in steps],
        "nli",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["pairs", "tokens"]) for name in inputs],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["pairs", 2])],
        [
            onnx.numpy_helper.from_array(np.array(v, np.int64 if v == [1] else np.float32), name)
            for name, v in numbers.items()
        ],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        folder / "nli.onnx",
    )
    return folder


@pytest.fixture(scope="session")
def graded_folder(head_folder, tmp_path_factory):
    """Write the model of `head_folder`, with a graded output of random weights in addition."""
    import torch

    from simllm.model import saved_model
    from train.contrastive.grades import with_graded_output

    loaded = saved_model.load(head_folder)
    torch.manual_seed(2)
    head = with_graded_output(loaded)
    with torch.no_grad():
        head.graded.weight.normal_(std=0.3)
    info = saved_model.ModelInfo(meaning=saved_model.MeaningInfo(head.config))
    folder = tmp_path_factory.mktemp("models") / "with-graded-head"
    saved_model.save(folder, loaded.encoder, loaded.tokenizer, info, "# A card\n", head=head)
    return folder


@pytest.fixture
def corpus_file(comments, tmp_path):
    file = tmp_path / "comments.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in comments))
    return file


@pytest.fixture(scope="module")
def ray_cluster():
    """Start a Ray cluster: a head node without processors, and two nodes with one processor each."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        yield cluster
        cluster.shutdown()
