"""Loading of configurations, with overrides `key=value`."""

import pytest

from simllm.errors import InputError
from tests.conftest import ROOT
from train.pretrain.config import PretrainConfig
from train.runtime.yaml_and_overrides import load


@pytest.mark.parametrize("name", ["debug", "mini", "base"])
def test_shipped_configs_load(name):
    config = load(PretrainConfig, ROOT / "configs" / f"{name}.yaml", [])
    assert config.out == f"runs/{name}"


def test_overrides():

    overrides = ["updates=7", "warmup_updates=1", "model.hidden_size=64", "corpus.sources=[a.txt]"]
    config = load(PretrainConfig, ROOT / "configs" / "debug.yaml", overrides)
    assert (config.updates, config.model.hidden_size, config.corpus.sources) == (7, 64, ("a.txt",))
    with pytest.raises(InputError, match=r"unknown key model\.hidden"):
        load(PretrainConfig, ROOT / "configs" / "debug.yaml", ["model.hidden=64"])
    with pytest.raises(InputError, match="expected key=value"):
        load(PretrainConfig, ROOT / "configs" / "debug.yaml", ["updates"])
    with pytest.raises(InputError, match="updates holds no keys"):
        load(PretrainConfig, ROOT / "configs" / "debug.yaml", ["updates.a=7"])
    with pytest.raises(InputError) as raised:
        load(PretrainConfig, ROOT / "configs" / "debug.yaml", ["updats=3", "model.vocab_size=5", "packing=x"])
    for problem in ("unknown key updats", "model: vocab_size must be more", "packing must be documents or"):
        assert problem in str(raised.value)
    with pytest.raises(InputError, match=r"updates must be positive; .*warmup_updates must be between"):
        load(PretrainConfig, ROOT / "configs" / "debug.yaml", ["updates=0"])
