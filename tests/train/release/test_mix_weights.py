"""Mixing the weights of models."""

import json
from dataclasses import replace

import pytest
import tokenizers
import torch
from safetensors.torch import load_file

from simllm import InputError
from simllm.model import saved_model
from simllm.model.tokenizer import Tokenizer
from train.release import mix_weights
from train.release.mix_weights import interpolate_weights, write_mixed


def test_weights_are_interpolated_with_the_start(shifted_runs, tmp_path):
    write_mixed(shifted_runs[1], tmp_path / "out", [shifted_runs[0] / "model"], 0.2)
    first, mean = (
        load_file(folder / "model.safetensors") for folder in (shifted_runs[0] / "model", tmp_path / "out")
    )
    assert all(tensor.dtype == torch.float16 for tensor in mean.values())
    for name, tensor in first.items():
        torch.testing.assert_close(mean[name].float(), tensor + 0.4, atol=5e-3, rtol=1e-3)  # 8 bits
    assert saved_model.load(tmp_path / "out").info.provenance["start_share"] == 0.2


def test_several_models_have_equal_parts_of_the_share(call, shifted_runs, tmp_path):
    models = [run / "model" for run in shifted_runs]
    done = call(mix_weights, shifted_runs[1], tmp_path / "out", "--start", *models, "--share", "0.5")
    assert done.returncode == 0, done.stderr
    first, mean = (load_file(folder / "model.safetensors") for folder in (models[0], tmp_path / "out"))
    for name, tensor in first.items():  # a quarter of the start, three quarters of the end
        torch.testing.assert_close(mean[name].float(), tensor + 0.375, atol=5e-3, rtol=1e-3)


def test_the_command_writes_a_model_folder_and_replaces_only_its_own(call, shifted_runs, tmp_path):
    out = tmp_path / "mixed"
    arguments = [shifted_runs[1], out, "--start", shifted_runs[0] / "model", "--share", "0.2"]
    for _ in range(2):
        assert call(mix_weights, *arguments).returncode == 0
    assert saved_model.load(out).info.provenance["start_share"] == 0.2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("years of work")
    done = call(mix_weights, shifted_runs[1], tmp_path / "mine", *arguments[2:])
    assert done.returncode == 2
    assert "holds files that simllm did not write" in done.stderr


def test_a_share_above_one_is_an_error(call, shifted_runs, tmp_path):
    done = call(
        mix_weights, shifted_runs[1], tmp_path / "out", "--start", shifted_runs[0] / "model", "--share", "1.5"
    )
    assert (done.returncode, done.stderr) == (2, "error: --share 1.5: expected 0 to 1\n")


def test_rejects_interpolation_between_different_vocabularies(shifted_runs):
    a, b = (saved_model.load(run / "model") for run in shifted_runs)
    other = json.loads(b.tokenizer.backend.to_str())
    vocabulary = other["model"]["vocab"]
    first, second = list(vocabulary)[-2:]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    other["model"]["merges"] = []
    swapped = replace(b, tokenizer=Tokenizer(tokenizers.Tokenizer.from_str(json.dumps(other))))
    with pytest.raises(InputError, match="another shape or vocabulary"):
        interpolate_weights(swapped, [a], 0.5)
