"""Postprocessing of trained weights before a release."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import tokenizers
import torch
from safetensors.torch import load_file, save_file

from simllm import InputError, SimLLM
from simllm.model import saved_model
from simllm.model.tokenizer import Tokenizer
from simllm.model.weight_quantization import BLOCK, are_blocks
from train.release import mix_weights
from train.release.mix_weights import interpolate_weights, write_mixed
from train.release.released_weights import centre_embeddings, postprocess


@pytest.fixture
def runs(model_folder, tmp_path):
    """Write two runs of one model; the weights of the second run are all larger by 0.5."""
    for name, step in (("start", 0.0), ("end", 0.5)):
        shutil.copytree(model_folder, tmp_path / name / "model")
        weights = tmp_path / name / "model" / "model.safetensors"
        moved = {key: tensor + step for key, tensor in load_file(weights).items()}
        save_file(moved, weights, metadata={"format": "pt"})
    return [tmp_path / "start", tmp_path / "end"]


def test_weights_are_interpolated_with_the_start(runs, tmp_path):
    write_mixed(runs[1], tmp_path / "out", [runs[0] / "model"], 0.2)
    first, mean = (
        load_file(folder / "model.safetensors") for folder in (runs[0] / "model", tmp_path / "out")
    )
    assert all(tensor.dtype == torch.float16 for tensor in mean.values())
    for name, tensor in first.items():
        torch.testing.assert_close(mean[name].float(), tensor + 0.4, atol=5e-3, rtol=1e-3)  # 8 bits
    assert saved_model.load(tmp_path / "out").info.provenance["start_share"] == 0.2


def test_several_models_have_equal_parts_of_the_share(call, runs, tmp_path):
    models = [run / "model" for run in runs]
    done = call(mix_weights, runs[1], tmp_path / "out", "--start", *models, "--share", "0.5")
    assert done.returncode == 0, done.stderr
    first, mean = (load_file(folder / "model.safetensors") for folder in (models[0], tmp_path / "out"))
    for name, tensor in first.items():  # a quarter of the start, three quarters of the end
        torch.testing.assert_close(mean[name].float(), tensor + 0.375, atol=5e-3, rtol=1e-3)


def test_matrices_are_rounded_to_8_bits_and_other_weights_stay(runs, tmp_path):
    postprocess(runs[1], tmp_path / "out", [])
    trained, released = (load_file(f / "model.safetensors") for f in (runs[1] / "model", tmp_path / "out"))
    for name, tensor in trained.items():
        if tensor.ndim < 2 or tensor.shape[1] % BLOCK:
            assert torch.equal(released[name], tensor.half()), name
        else:
            assert are_blocks(released[name].float().numpy(), 1), name
            torch.testing.assert_close(released[name].float(), tensor, atol=1e-2, rtol=0)


def test_the_command_writes_a_model_folder_and_replaces_only_its_own(call, runs, tmp_path):
    out = tmp_path / "mixed"
    arguments = [runs[1], out, "--start", runs[0] / "model", "--share", "0.2"]
    for _ in range(2):
        assert call(mix_weights, *arguments).returncode == 0
    assert saved_model.load(out).info.provenance["start_share"] == 0.2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("years of work")
    done = call(mix_weights, runs[1], tmp_path / "mine", *arguments[2:])
    assert done.returncode == 2
    assert "holds files that simllm did not write" in done.stderr


def test_a_share_above_one_is_an_error(call, runs, tmp_path):
    done = call(mix_weights, runs[1], tmp_path / "out", "--start", runs[0] / "model", "--share", "1.5")
    assert (done.returncode, done.stderr) == (2, "error: --share 1.5: expected 0 to 1\n")


def test_rejects_interpolation_between_different_vocabularies(runs):
    a, b = (saved_model.load(run / "model") for run in runs)
    other = json.loads(b.tokenizer.backend.to_str())
    vocabulary = other["model"]["vocab"]
    first, second = list(vocabulary)[-2:]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    other["model"]["merges"] = []
    swapped = replace(b, tokenizer=Tokenizer(tokenizers.Tokenizer.from_str(json.dumps(other))))
    with pytest.raises(InputError, match="another shape or vocabulary"):
        interpolate_weights(swapped, [a], 0.5)


def test_centring_changes_no_probability_of_the_same_meaning(head_folder, tmp_path, comments):
    model = saved_model.load(head_folder)
    centre_embeddings(model, comments[:50])
    saved_model.save(tmp_path / "centred", model.encoder, model.tokenizer, model.info, "", head=model.head)
    before, after = (SimLLM(folder) for folder in (head_folder, tmp_path / "centred"))
    embeddings = [metric.embed(comments[:50]).mean(axis=0) for metric in (before, after)]
    assert np.abs(embeddings[1]).max() < 1e-5 < np.abs(embeddings[0]).max()
    pairs = comments[:20], comments[20:40]
    assert np.abs(after.score(*pairs).same - before.score(*pairs).same).max() < 1e-5
