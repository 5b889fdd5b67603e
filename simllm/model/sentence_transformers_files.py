"""Settings files with which sentence-transformers and transformers load a model folder."""

from __future__ import annotations

from typing import Any

from simllm.model.model_config import ModelConfig
from simllm.model.tokenizer import SPECIAL_TOKENS


def other_libraries_files(config: ModelConfig, pooling: str) -> dict[str, Any]:
    """Return the content of the settings files that transformers and sentence-transformers need.

    Args:
        config: The shape of the encoder.
        pooling: The name of the pooling, such as "mean".

    Returns:
        A dict: the keys are the paths of these files in the model folder, the values are their contents as
        JSON values.
    """
    bos, pad, eos, unk, mask = SPECIAL_TOKENS
    module = "sentence_transformers.models."
    return {
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": config.max_length,
            "split_special_tokens": True,
            "bos_token": bos,
            "cls_token": bos,
            "eos_token": eos,
            "sep_token": eos,
            "pad_token": pad,
            "unk_token": unk,
            "mask_token": mask,
        },
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": module + "Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": module + "Pooling"},
        ],
        "sentence_bert_config.json": {"max_seq_length": config.max_length, "do_lower_case": False},
        "1_Pooling/config.json": {
            "word_embedding_dimension": config.hidden_size,
            "pooling_mode_cls_token": pooling == "cls",
            "pooling_mode_mean_tokens": pooling == "mean",
            "pooling_mode_max_tokens": pooling == "max",
        },
    }
