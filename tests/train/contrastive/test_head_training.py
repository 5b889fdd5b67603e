"""Training of the meaning head alone, over a frozen encoder."""

import signal

import pytest
import torch
from safetensors.torch import load_file, save_file

from simllm.model import checkpoint
from tests.conftest import ROOT
from tests.train.training_processes import assert_same_weights

UPDATES = 6


@pytest.fixture
def earlier(update_folder, tmp_path):
    """Write a model like the initial one, whose weights are larger by 1; return its folder."""
    loaded = checkpoint.load(update_folder / "model")
    checkpoint.save(tmp_path / "earlier", loaded.encoder, loaded.tokenizer, loaded.info, "")
    weights = tmp_path / "earlier" / "model.safetensors"
    save_file({name: x + 1 for name, x in load_file(weights).items()}, weights, metadata={"format": "pt"})
    return tmp_path / "earlier"


@pytest.fixture
def arguments(update_folder, tmp_path):
    """Return a function that makes the arguments of a short run, given its folder and overrides."""

    def made(out, *overrides):
        sources = f"[{{source: {update_folder}/train.txt, share: 1}}]"
        head = "{width: 16, layers: 1, heads: 2}"
        short = {"updates": UPDATES, "warmup_updates": 1, "evaluate_every": 2, "precision": "fp32"}
        values = {
            "model": update_folder / "model",
            "meaning": f"{{head: {head}, sources: {sources}, pairs: 12, weight: 1}}",
            "exclude": "[]",
            "dev": f"[{update_folder}/rated.jsonl]",
            "dev_comments": update_folder / "train.txt",
            "out": out,
            **short,
        }
        given = [f"{key}={value}" for key, value in values.items()]
        return [ROOT / "configs" / "meaning-head.yaml", *given, *overrides]

    return made


def weights_of(folder):
    return load_file(folder / "model" / "model.safetensors"), load_file(folder / "model" / checkpoint.HEAD)


def test_only_the_head_is_trained(run, arguments, update_folder, tmp_path):
    """A second run continues from the head of the first, and leaves the encoder as it is, too."""
    status, errors = run("train.contrastive.head_training", *arguments(tmp_path / "one", "mix=null"))
    assert status == 0, errors
    continued = arguments(tmp_path / "two", "mix=null", f"model={tmp_path}/one/model", "learning_rate=1e-6")
    status, errors = run("train.contrastive.head_training", *continued)
    assert status == 0, errors
    before = load_file(update_folder / "model" / "model.safetensors")
    (first, head), (second, again) = weights_of(tmp_path / "one"), weights_of(tmp_path / "two")
    assert all(
        torch.equal(before[name], first[name]) and torch.equal(first[name], second[name]) for name in before
    )
    assert not torch.equal(head["logit.weight"], again["logit.weight"])
    torch.testing.assert_close(head, again, atol=1e-4, rtol=0)
    other_shape = arguments(
        tmp_path / "three", "mix=null", f"model={tmp_path}/one/model", "meaning.head.width=32"
    )
    status, errors = run("train.contrastive.head_training", *other_shape)
    assert status == 2
    assert errors.splitlines()[-1].endswith("model: its meaning head has another shape than meaning.head")


def test_encoder_is_mixed_with_the_earlier_model(run, arguments, update_folder, earlier, tmp_path):
    mix = [f"mix.model={earlier}", "mix.share=0.25"]
    status, errors = run("train.contrastive.head_training", *arguments(tmp_path / "run", *mix))
    assert status == 0, errors
    before, (after, _) = (
        load_file(update_folder / "model" / "model.safetensors"),
        weights_of(tmp_path / "run"),
    )
    torch.testing.assert_close(after, {name: x + 0.25 for name, x in before.items()})
    assert checkpoint.load(tmp_path / "run" / "model").info.provenance["start"]["start_share"] == 0.25


@pytest.mark.parametrize("share", ["0", "1", "1.5"])
def test_invalid_share_is_an_error(run, arguments, earlier, tmp_path, share):
    mix = [f"mix.model={earlier}", f"mix.share={share}"]
    status, errors = run("train.contrastive.head_training", *arguments(tmp_path / "run", *mix))
    assert status == 2
    assert "mix: share must be between 0 and 1, not" in errors
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_killed_head_training_is_resumed_to_the_same_weights(run, arguments, tmp_path):
    for name in ("whole", "killed"):
        given = arguments(tmp_path / name, "mix=null", "updates=20")
        if name == "killed":
            started = run.start("train.contrastive.head_training", *given)
            started.until("update 6 ")
            started.signal(signal.SIGKILL)
            assert started.finish() == -signal.SIGKILL
        status, errors = run("train.contrastive.head_training", *given)
        assert status == 0, errors
    assert_same_weights(tmp_path / "whole", tmp_path / "killed")
    assert torch.equal(*(weights_of(tmp_path / name)[1]["logit.weight"] for name in ("whole", "killed")))
