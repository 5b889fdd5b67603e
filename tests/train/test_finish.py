"""What is done to trained weights before they are released."""

import json
import shutil
from dataclasses import replace

import pytest
import tokenizers
import torch
from safetensors.torch import load_file, save_file

from simllm import InputError, checkpoint
from simllm.tokenizer import Tokenizer
from train.finish import averaged, finish


@pytest.fixture
def runs(model_folder, tmp_path):
    """Two runs from one model, a step apart."""
    for name, step in (("short", 0.0), ("long", 0.5)):
        shutil.copytree(model_folder, tmp_path / name / "model")
        weights = tmp_path / name / "model" / "model.safetensors"
        moved = {key: tensor + step for key, tensor in load_file(weights).items()}
        save_file(moved, weights, metadata={"format": "pt"})
    return [tmp_path / "short", tmp_path / "long"]


def test_weights_are_averaged(runs, tmp_path):
    finish(runs, [], tmp_path / "out")
    first, mean = (
        load_file(folder / "model.safetensors") for folder in (runs[0] / "model", tmp_path / "out")
    )
    assert all(tensor.dtype == torch.float16 for tensor in mean.values())
    for name, tensor in first.items():
        torch.testing.assert_close(mean[name].float(), tensor + 0.25, atol=1e-3, rtol=1e-3)
    of = checkpoint.load(tmp_path / "out").info.provenance["mean_of"]
    assert of == [checkpoint.load(run / "model").hash for run in runs]


def test_one_run_stays_as_it_is(runs):
    model = checkpoint.load(runs[1] / "model")
    assert averaged([model]).hash == model.hash
    assert "mean_of" not in averaged([model]).info.provenance


def test_other_vocabularies_have_no_mean(runs):
    a, b = (checkpoint.load(run / "model") for run in runs)
    other = json.loads(b.tokenizer.backend.to_str())
    vocabulary = other["model"]["vocab"]
    first, second = list(vocabulary)[-2:]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    other["model"]["merges"] = []
    swapped = replace(b, tokenizer=Tokenizer(tokenizers.Tokenizer.from_str(json.dumps(other))))
    with pytest.raises(InputError, match="different shapes or vocabularies"):
        averaged([a, swapped])
