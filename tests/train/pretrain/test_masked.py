"""Continued pretraining of models of transformers: real folders, which other libraries load."""

import json
import shutil
import signal

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.train import small_teachers
from tests.train.training_processes import assert_same_weights, log

pytestmark = pytest.mark.slow

SHORT = [
    "batch_tokens=1024", "accumulation=1", "updates=12", "warmup_updates=2", "evaluate_every=4",
    "learning_rate=0.01", "test_texts=50", "max_length=40", "precision=fp32",
]  # fmt: skip


@pytest.fixture(scope="module")
def roberta(short_texts, tmp_path_factory):
    """Save a small RoBERTa with random weights and a byte-level vocabulary."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaForMaskedLM, RobertaTokenizerFast

    folder = tmp_path_factory.mktemp("transformers") / "roberta"
    bytes_ = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bytes_.train_from_iterator(short_texts, vocab_size=500, special_tokens=special)
    folder.mkdir()
    bytes_.save_model(str(folder))
    files = [str(folder / "vocab.json"), str(folder / "merges.txt")]
    RobertaTokenizerFast(*files, model_max_length=64).save_pretrained(folder)
    torch.manual_seed(3)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = RobertaConfig(vocab_size=500, max_position_embeddings=66, **shape)
    RobertaForMaskedLM(config).save_pretrained(folder)
    return folder


def masked(model, comments, out, *more):
    return [
        "configs/masked.yaml",
        f"model={model}",
        f"out={out}",
        f"corpus.sources=[{comments}]",
        *SHORT,
        *more,
    ]


def test_continued_model_predicts_comments_better_and_loads_elsewhere(run, roberta, few_comments, tmp_path):
    out = tmp_path / "run"
    status, errors = run("train.pretrain.masked", *masked(roberta, few_comments, out, "snapshot_every=8"))
    assert status == 0, errors
    perplexities = [line["test_perplexity"] for line in log(out)]
    assert perplexities[-1] < 0.7 * perplexities[0]
    facts = json.loads((out / "model" / "training.json").read_text())
    assert facts["test_perplexity"] == min(perplexities)
    assert sorted(folder.name for folder in (out / "snapshots").iterdir()) == [
        "update-00000008",
        "update-00000012",
    ]

    from bert_score import BERTScorer
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    text = "Returns the name of the file."
    ids = [AutoTokenizer.from_pretrained(folder)(text)["input_ids"] for folder in (roberta, out / "model")]
    assert ids[0] == ids[1]
    again, report = AutoModelForMaskedLM.from_pretrained(out / "model", output_loading_info=True)
    assert not report["missing_keys"]
    stored = load_file(out / "model" / "model.safetensors")
    assert torch.equal(again.state_dict()["lm_head.dense.weight"], stored["lm_head.dense.weight"])
    before, after = (
        SentenceTransformer(str(folder)).encode([text, "Opens it"]) for folder in (roberta, out / "model")
    )
    assert before.shape == after.shape == (2, 32)
    assert np.abs(before - after).max() > 0.01
    scorer = BERTScorer(model_type=str(out / "model"), num_layers=2, batch_size=2)
    assert float(scorer.score([text], [text])[2][0]) == pytest.approx(1, abs=1e-5)


def test_stopped_run_ends_with_the_same_weights(run, roberta, few_comments, tmp_path):
    status, errors = run("train.pretrain.masked", *masked(roberta, few_comments, tmp_path / "whole"))
    assert status == 0, errors
    command = ["train.pretrain.masked", *masked(roberta, few_comments, tmp_path / "stopped")]
    started = run.start(*command, pause_at="update 4 ")
    started.signal(signal.SIGTERM)
    assert started.finish() == 75, started.errors
    status, errors = run(*command)
    assert status == 0, errors
    assert "resuming after update" in errors
    assert_same_weights(tmp_path / "whole", tmp_path / "stopped")


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_encoders_without_output_layers_get_new_ones(run, teachers, few_comments, tmp_path, kind):
    more = ["updates=2", "warmup_updates=1", "evaluate_every=1"]
    start = shutil.copytree(teachers[kind], tmp_path / kind)
    names = json.loads((start / "tokenizer_config.json").read_text())
    names["mask_token"] = small_teachers.SPECIAL[kind][4]
    (start / "tokenizer_config.json").write_text(json.dumps(names))
    status, errors = run("train.pretrain.masked", *masked(start, few_comments, tmp_path / "run", *more))
    assert status == 0, errors
    assert f"{kind} has no output layers for language modelling; they start at random" in errors

    from transformers import AutoModel

    _, report = AutoModel.from_pretrained(tmp_path / "run" / "model", output_loading_info=True)
    assert all("pooler" in name for name in report["missing_keys"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "model.safetensors"),
        (
            {"model.safetensors": "x", "config.json": '{"model_type": "t5"}'},
            "its model_type is 't5'; expected",
        ),
        ({"model.safetensors": "x", "config.json": '{"model_type": "bert"}'}, "damaged"),
    ],
)
def test_folders_of_something_else_are_refused(run, few_comments, tmp_path, changes, message):
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    for name, text in changes.items():
        (folder / name).write_text(text)
    status, errors = run("train.pretrain.masked", *masked(folder, few_comments, tmp_path / "run"))
    assert status == 2
    assert errors.splitlines()[-1].startswith("error: ")
    assert message in errors.splitlines()[-1]
