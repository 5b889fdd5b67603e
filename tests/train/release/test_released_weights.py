"""Postprocessing of trained weights before a release."""

import torch
from safetensors.torch import load_file

from simllm.model.saved_model import BLOCK, are_blocks
from train.release.folder import postprocess


def test_matrices_are_rounded_to_8_bits_and_other_weights_stay(shifted_runs, tmp_path):
    postprocess(shifted_runs[1], tmp_path / "out", [])
    trained, released = (
        load_file(f / "model.safetensors") for f in (shifted_runs[1] / "model", tmp_path / "out")
    )
    for name, tensor in trained.items():
        if tensor.ndim < 2 or tensor.shape[1] % BLOCK:
            assert torch.equal(released[name], tensor.half()), name
        else:
            assert are_blocks(released[name].float().numpy(), 1), name
            torch.testing.assert_close(released[name].float(), tensor, atol=1e-2, rtol=0)
