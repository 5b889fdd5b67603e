"""The negative log-likelihood of code under a local causal language model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simllm.errors import InputError

_LONGEST = 2048  # longest input in tokens, if the model's configuration does not give it


def mean_nll(texts: Sequence[str], folder: Path) -> list[float | None]:
    """Return the mean negative log-likelihood of the tokens of each text, in nats.

    The value is usually lower for a text that the model has read in training. The first token has no context,
    and is left out. The end of a text that is too long for the model is cut off.

    Args:
        texts: The texts.
        folder: The folder of a causal language model, as saved by the package transformers.

    Returns:
        A number for each text; None for a text of fewer than two tokens.

    Raises:
        InputError: The package transformers is not installed, or the folder has no such model.
    """
    import torch

    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError:
        raise InputError("--nll-model needs the package transformers") from None
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected a causal language model")
    try:
        local: Any = {"local_files_only": True, "trust_remote_code": False}
        tokenizer = AutoTokenizer.from_pretrained(folder, **local)
        model = AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True, **local).eval()
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{folder}: no causal language model ({str(error).splitlines()[0]})") from None
    longest = getattr(model.config, "max_position_embeddings", None) or _LONGEST
    found: list[float | None] = []
    with torch.inference_mode():
        for text in texts:
            ids = torch.tensor([tokenizer(text)["input_ids"][:longest]], dtype=torch.long)
            if ids.shape[1] < 2:
                found.append(None)
                continue
            logits = model(input_ids=ids).logits[0, :-1]
            found.append(float(torch.nn.functional.cross_entropy(logits.float(), ids[0, 1:])))
    return found
