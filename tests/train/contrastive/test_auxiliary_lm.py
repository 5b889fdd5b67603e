"""Auxiliary language modelling adds its loss to the contrastive stage, and changes nothing else."""

import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.torch import load_file

from simllm.errors import InputError
from simllm.model import saved_model
from tests.train.contrastive.one_update import assert_equal, settings, update, update_in_processes
from train.contrastive.__main__ import train
from train.contrastive.task import ContrastiveTask
from train.runtime.distributed import World
from train.runtime.signals import StopRequest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lm_overrides(update_folder, tmp_path_factory):
    """Return configuration overrides: a start model without dropout, and auxiliary language modelling."""
    plain = saved_model.load(update_folder / "model")
    out = tmp_path_factory.mktemp("beside")
    config = replace(plain.encoder.config, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    plain.encoder.config = config
    saved_model.save(out / "model", plain.encoder, plain.tokenizer, plain.info, "# A card\n")
    texts = f"texts: {update_folder}/train.txt, update_tokens: 900, predict_probability: 0.3, weight: 0.5"
    return [f"model={out}/model", f"out={out}", f"language_model={{{texts}}}"]


@pytest.fixture(scope="module")
def whole(update_folder, lm_overrides):
    return update(update_folder, World(), *lm_overrides)


def test_auxiliary_loss_is_added(update_folder, lm_overrides, whole):
    alone = update(update_folder, World(), *lm_overrides, "language_model=null")
    task = ContrastiveTask(settings(update_folder, *lm_overrides), World())
    batches = task.auxiliary_lm._batches
    parts = batches.texts_of_update(3, 1)
    loss = 0.5 * task.model(batches.make_batch(*parts[0])) / batches.count_predicted(parts)
    loss.backward()
    assert 600 < batches.text_shapes()[np.isin(batches.texts, parts[0][1]), 0].sum() < 1200
    gradients = {name: p.grad for name, p in task.model.named_parameters() if p.grad is not None}
    assert {"head.bias", "head.dense.weight"} <= gradients.keys()
    expected = {"loss": alone["loss"] + loss.item()} | {
        name: values + alone.get(name.removeprefix("encoder."), 0) for name, values in gradients.items()
    }
    assert_equal(whole, expected, 5e-6)


def test_excluded_texts_are_not_read(update_folder, lm_overrides, tmp_path):
    texts = (update_folder / "train.txt").read_text().splitlines()
    row = {"reference": texts[3], "candidate": texts[5], "rating": 1}
    (tmp_path / "rated.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "raw.txt").write_text("".join(f"{text.title()} \u6f22\n\n" for text in texts))
    overrides = [f"out={tmp_path}", f"exclude=[{tmp_path}/rated.jsonl]"]
    overrides.append(f"language_model.texts={tmp_path}/raw.txt")
    ContrastiveTask(settings(update_folder, *lm_overrides, *overrides), World())
    (kept,) = tmp_path.glob("language-model/*/texts.txt")
    found = set(kept.read_text().splitlines())
    assert {texts[3], texts[5]} <= set(texts) - found
    assert len(found & set(texts)) > 0.8 * len(texts)  # cleaned


def test_damaged_shards_are_written_again(update_folder, lm_overrides, tmp_path):
    overrides = [*lm_overrides, f"out={tmp_path}"]
    ContrastiveTask(settings(update_folder, *overrides), World())
    (kept,) = tmp_path.glob("language-model/*/texts.txt")
    whole = kept.read_text()
    kept.write_text(whole[: len(whole) // 2])
    ContrastiveTask(settings(update_folder, *overrides), World())
    assert kept.read_text() == whole


# In the next two tests, sums in another order round differently.


def test_cached_gradients_equal_plain_gradients(update_folder, lm_overrides, whole):
    assert_equal(update(update_folder, World(), "cache_gradients=true", *lm_overrides), whole, 5e-6)


def test_several_processes_compute_the_same_update(run, update_folder, lm_overrides, whole, tmp_path):
    for result in update_in_processes(run, 2, update_folder, tmp_path, "cache_gradients=true", *lm_overrides):
        assert_equal(result, whole, 5e-6)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("update_tokens", 63, "language_model: update_tokens must be at least 64"),
        ("texts", "{folder}", "cannot be read"),
        ("texts", "{folder}/nothing", "no such file"),
        ("predict_probability", 0.0001, "language_model: no text is long enough to predict a token of"),
    ],
)
def test_invalid_language_model_settings_are_errors(
    update_folder, lm_overrides, tmp_path, key, value, message
):
    (tmp_path / "folder").mkdir()
    value = str(value).format(folder=tmp_path / "folder")
    config = settings(update_folder, *lm_overrides, f"out={tmp_path}", f"language_model.{key}={value}")
    with pytest.raises(InputError, match=message):
        ContrastiveTask(config, World())


def test_run_writes_an_encoder_without_head(update_folder, lm_overrides, tmp_path):
    updates = ["updates=3", "warmup_updates=1", "evaluate_every=3"]
    with StopRequest() as stop:
        folder = train(settings(update_folder, *lm_overrides, f"out={tmp_path}", *updates), World(), stop)
    before, after = saved_model.load(update_folder / "model"), saved_model.load(folder)
    assert after.info.provenance["objective"] == "contrastive (InfoNCE), language modelling"
    assert after.encoder.state_dict().keys() == before.encoder.state_dict().keys()
    assert after.hash != before.hash
    assert any("head.bias" in name for name in load_file(next(tmp_path.glob("states/*/tensors.safetensors"))))
