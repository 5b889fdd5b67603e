"""Sharded runs, whose weights are distributed over processes, end with the same weights as other runs."""

import signal

import pytest

from simllm.errors import InputError
from tests.conftest import ROOT
from tests.train.training_processes import log, pretraining, weights
from train.pretrain.config import PretrainConfig
from train.runtime.config import load

pytestmark = pytest.mark.slow

PLAIN = ["model.hidden_dropout_prob=0", "model.attention_probs_dropout_prob=0", "accumulation=2"]


def test_sharded_run_resumed_by_more_processes_equals_a_run_of_one_process(run, few_comments, tmp_path):
    """Two processes start the run with gradient checkpointing; three processes finish it without.

    The state that the first process saves is whole: it has all weights, not only those of this process.
    """
    alone, out = tmp_path / "alone", tmp_path / "run"
    assert run("train.pretrain", *pretraining(few_comments, alone, *PLAIN))[0] == 0
    more = ["sharding=true", "gradient_checkpointing=true"]
    ranks = run.ranks(
        2, "train.pretrain", *pretraining(few_comments, out, *PLAIN, *more), pause_at="update 12 "
    )
    for rank in ranks:
        rank.signal(signal.SIGTERM)
    assert [rank.finish() for rank in ranks] == [75, 75], ranks[0].errors
    ranks = run.ranks(3, "train.pretrain", *pretraining(few_comments, out, *PLAIN, "sharding=true"))
    assert [rank.finish() for rank in ranks] == [0] * 3, ranks[0].errors
    assert "resuming after update" in ranks[0].errors
    one, two = weights(out), weights(alone)
    assert {name: value.shape for name, value in one.items()} == {n: v.shape for n, v in two.items()}
    for name in one:
        if name.startswith("model."):
            assert (one[name] - two[name]).abs().max() < 1e-3, name
    perplexity = [line["test_perplexity"] for line in log(out)]
    assert perplexity == pytest.approx([line["test_perplexity"] for line in log(alone)], rel=1e-3)


def test_sharding_with_loss_scaling_is_refused():
    with pytest.raises(InputError, match="sharding: not with fp16"):
        load(PretrainConfig, ROOT / "configs" / "base.yaml", ["sharding=true", "precision=fp16"])
