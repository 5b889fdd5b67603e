"""The negative log-likelihood of code under a causal language model."""

import json
import shutil

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel

from simllm import InputError
from simllm.evaluation.metamorphic.likelihood import mean_nll


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a causal language model with random weights, whose tokens are whole words."""
    folder = tmp_path_factory.mktemp("model")
    words = ["<unk>", "int", "f", "x", "return", ";"]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    torch.manual_seed(1)
    size = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 8, "vocab_size": len(words)}
    GPT2LMHeadModel(GPT2Config(**size, bos_token_id=0, eos_token_id=0)).save_pretrained(folder)
    return folder


def test_mean_over_all_tokens_but_the_first(folder):
    model = GPT2LMHeadModel.from_pretrained(folder).eval()
    ids = torch.tensor([[1, 2, 5]])
    chances = model(ids).logits[0].log_softmax(-1)
    expected = -(chances[0, 2] + chances[1, 5]) / 2
    found, cut = mean_nll(["int f ;", "int", "int f x return ; int f x return ; int f"], folder)
    assert found[0] == pytest.approx(float(expected.detach()), abs=1e-5)
    assert found[1] is None
    assert found[2] > 0  # cut at the longest input
    assert cut == 1


def test_a_folder_without_a_model_is_an_error(tmp_path):
    for folder, message in [(tmp_path, "no causal language model"), (tmp_path / "x", "no such folder")]:
        with pytest.raises(InputError, match=message) as error:
            mean_nll(["int f ;"], folder)
        assert "\n" not in str(error.value)


def test_code_of_the_folder_is_never_run(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "model")
    (copy / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    config = json.loads((copy / "config.json").read_text())
    own = {"auto_map": {"AutoConfig": "own.C", "AutoModelForCausalLM": "own.M"}, "model_type": "own"}
    (copy / "config.json").write_text(json.dumps(config | own))
    with pytest.raises(InputError, match="no causal language model"):
        mean_nll(["int f ;"], copy)
    assert not (tmp_path / "ran").exists()


def test_weights_that_are_pickled_or_do_not_fit_are_refused(folder, tmp_path, capfd):
    copy = shutil.copytree(folder, tmp_path / "model")
    config = json.loads((copy / "config.json").read_text())
    for changed, message in [
        ({"n_layer": 10**9}, "more layers than weights"),
        ({"n_layer": 3}, "weights are missing|needs .* numbers"),
        ({"vocab_size": 10**12}, "needs .* numbers, but"),
        ({"n_embd": 18}, "no causal language model"),
    ]:
        (copy / "config.json").write_text(json.dumps(config | changed))
        with pytest.raises(InputError, match=message) as error:
            mean_nll(["int f ;"], copy)
        assert "\n" not in str(error.value)
    assert not capfd.readouterr().err
    (copy / "config.json").write_text(json.dumps(config))
    weights = GPT2LMHeadModel.from_pretrained(copy).state_dict()
    torch.save(weights, copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    with pytest.raises(InputError, match="no weights in the format safetensors"):
        mean_nll(["int f ;"], copy)
