"""The estimate of the cost of a pretraining run."""

import pytest
import torch

from tests.conftest import ROOT
from train.pretrain import __main__ as command
from train.pretrain.config import PretrainConfig
from train.runtime import config as training_config
from train.runtime.distributed import World


@pytest.mark.parametrize(
    ("bf16_peak", "precision", "remark"),
    [(1e3, "fp32", ", with precision=fp32; bf16 takes longer on this CPU"), (1e6, "bf16", "")],
)
def test_the_trial_does_not_emulate_bfloat16(monkeypatch, bf16_peak, precision, remark):
    peaks = {"bf16": bf16_peak, "fp32": 1e4}  # far below this machine's
    monkeypatch.setattr(command, "peak_flops", lambda device, precision: peaks[precision])
    config = training_config.load(PretrainConfig, ROOT / "configs" / "debug.yaml", ["precision=bf16"])
    estimated = command.estimate(config, World(device=torch.device("cpu")))
    assert f"cpu, {precision}: " in estimated
    assert "MFU 100%" in estimated  # never more
    assert estimated.endswith(f"evaluation not counted{remark}")
