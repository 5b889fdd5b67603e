import json
from dataclasses import dataclass

import pytest

from simllm.errors import InputError
from simllm.io.strict_loading import build
from simllm.model.network_shape import ModelConfig
from tests.conftest import ROOT
from train.pretrain.config import PretrainConfig
from train.runtime.config_file import load


def test_all_config_problems_are_reported_together():
    with pytest.raises(InputError) as error:
        build(
            PretrainConfig, {"out": "x", "sede": 1, "corpus": {"sources": "a"}, "updates": "many"}, "c.yaml"
        )
    message = str(error.value)
    for part in (
        "c.yaml: ",
        "unknown key sede",
        "missing key seed",
        "corpus.sources must be a list, not 'a'",
        "updates must be of type int, not 'many'",
        "missing key model",
    ):
        assert part in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["debug", "mini", "base"])
def test_shipped_configs_load(name):
    config = load(PretrainConfig, ROOT / "configs" / f"{name}.yaml", [])
    assert config.out == f"runs/{name}"


@dataclass(frozen=True)
class Inner:
    size: int


@dataclass(frozen=True)
class Outer:
    inner: Inner | None = None


def test_an_optional_part():
    assert build(Outer, {}, "c") == build(Outer, {"inner": None}, "c") == Outer()
    assert build(Outer, {"inner": {"size": 3}}, "c") == Outer(Inner(3))
    with pytest.raises(InputError, match=r"unknown key inner\.sise; missing key inner\.size"):
        build(Outer, {"inner": {"sise": 3}}, "c")


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


def test_model_config_is_saved_and_loaded_unchanged(small_config, tmp_path):
    small_config.save(tmp_path / "config.json")
    assert ModelConfig.load(tmp_path / "config.json") == small_config


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "bert"}, "model_type is not 'mpnet'"),
        ({"hidden": 1}, "unknown key hidden"),
        ({"hidden_size": 30}, "hidden_size 30 is not a multiple of num_attention_heads 4"),
        ({"hidden_act": "relu"}, "only 'gelu'"),
        ({"vocab_size": 1.5}, "vocab_size must be of type int"),
    ],
)
def test_invalid_model_config_is_an_error(small_config, tmp_path, change, message):
    file = tmp_path / "config.json"
    small_config.save(file)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(InputError, match=message):
        ModelConfig.load(file)
