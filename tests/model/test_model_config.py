import json

import pytest

from simllm.errors import InputError
from simllm.model.config import ModelConfig


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
