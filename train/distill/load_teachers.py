"""Loading of a teacher as a function that embeds texts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer as Backend

from simllm.errors import InputError
from simllm.io.read_json_object import read_json
from simllm.io.strict_dataclass_loading import shown
from simllm.model import pooling
from simllm.model.exact_and_fast_mode import make_engine
from simllm.model.tokenizer import read_backend
from simllm.scoring.embed_texts import embed
from simllm.scoring.token_windows import Tokenized
from train.distill.bert_weights import KINDS, load_encoder

# Tokens of a text that a teacher reads.
_LONGEST = 128

Embed = Callable[[Sequence[str]], np.ndarray]  # n texts -> (n, D) float32 of length 1


def load(folder: Path, device: torch.device) -> Embed:
    """Load a model folder in the format of sentence-transformers or transformers."""
    if _has_mean_pooling(folder) and read_json(folder / "config.json").get("model_type") in KINDS:
        # simllm's encoder is several times faster on a CPU than sentence-transformers.
        encoder, tokenizer = load_encoder(folder), load_tokenizer(folder)
        engine = make_engine(encoder.eval().to(device), "fast")
        if tokenizer.get_vocab_size() > encoder.config.vocab_size:
            raise InputError(f"{folder}: the tokenizer has more tokens than config.json says")
        tokenizer.enable_truncation(min(_LONGEST, encoder.config.max_length))

        def embed_fast(texts: Sequence[str]) -> np.ndarray:
            ids = [[tuple(encoding.ids)] for encoding in tokenizer.encode_batch(list(texts))]
            return _scale_to_unit_length(embed(engine, Tokenized(ids), pooling.mean))

        return embed_fast

    # sentence-transformers imports what this file names: only its own modules are let through.
    for kind in _module_types(folder):
        if not re.fullmatch(r"sentence_transformers(\.\w+)+", kind, re.ASCII):
            raise InputError(f"{folder}: {shown(kind)} is not a module of sentence-transformers")
    try:
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(
            str(folder),
            device=str(device),
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )
    # The library raises errors of many kinds.
    except Exception as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{folder}: cannot be loaded as a teacher ({reason})") from None

    def embed_any(texts: Sequence[str]) -> np.ndarray:
        return _scale_to_unit_length(
            np.asarray(model.encode(list(texts), show_progress_bar=False), np.float32)
        )

    return embed_any


def _scale_to_unit_length(embeddings: np.ndarray) -> np.ndarray:
    """Scale each of the (n, D) embeddings to length 1."""
    return embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True).clip(min=1e-12)


def _has_mean_pooling(folder: Path) -> bool:
    """Return whether a teacher's embedding is the plain mean of the last hidden states, without further
    layers.
    """
    file = folder / "1_Pooling" / "config.json"
    kinds = [kind.rpartition(".")[2] for kind in _module_types(folder)]
    if not set(kinds) <= {"Transformer", "Pooling", "Normalize"}:
        return False
    # Without this file, sentence-transformers pools by the mean, too.
    if not file.is_file():
        return True
    facts = read_json(file)
    flags = {name for name, value in facts.items() if name.startswith("pooling_mode_") and value}
    return facts.get("pooling_mode") == "mean" or flags == {"pooling_mode_mean_tokens"}


def _module_types(folder: Path) -> list[str]:
    """Return the types in `modules.json`, such as "sentence_transformers.models.Pooling"."""
    modules = folder / "modules.json"
    try:
        parts = json.loads(modules.read_bytes()) if modules.is_file() else []
        return [str(part["type"]) for part in parts]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InputError(f"{modules}: expected a list of modules with their types") from None


def load_tokenizer(folder: Path) -> Backend:
    """Load a teacher's tokenizer, without padding and truncation."""
    return read_backend(folder / "tokenizer.json")
