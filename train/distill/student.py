"""The student before training: an encoder with token vectors and, optionally, layers from a teacher."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer as Backend
from torch import Tensor

from simllm.errors import InputError
from simllm.model.config import ModelConfig
from simllm.model.encoder import Encoder
from simllm.model.tokenizer import SPECIAL_TOKENS, Tokenizer
from train.distill.config import StartConfig
from train.distill.targets import compute_principal_axes
from train.distill.teachers import load_encoder, load_tokenizer

# First character of a token at the start of a word.
_SPACE = "▁"
_SPECIAL = {"<s>": ("<s>", "[CLS]"), "</s>": ("</s>", "[SEP]"), "<mask>": ("<mask>", "[MASK]")}


def make_student(config: ModelConfig, tokenizer: Tokenizer, source: StartConfig | None, seed: int) -> Encoder:
    """Make an untrained student, with random weights or weights from a teacher."""
    torch.manual_seed(seed)
    student = Encoder(config)
    if source is None:
        return student
    folder = Path(source.teacher)
    teacher = load_encoder(folder)
    vectors = average_token_vectors(teacher, load_tokenizer(folder), tokenizer)
    if vectors.shape[1] > config.hidden_size:
        # Principal axes keep most of the similarities between the token vectors.
        vectors = vectors @ torch.from_numpy(compute_principal_axes(vectors.numpy(), config.hidden_size))
    elif vectors.shape[1] < config.hidden_size:
        raise InputError(f"{folder}: has width {vectors.shape[1]}, the student {config.hidden_size}")
    with torch.no_grad():
        student.embeddings.token.weight.copy_(vectors)
    if source.layers:
        _copy_layers(teacher, student, source)
    return student


def _copy_layers(teacher: Encoder, student: Encoder, source: StartConfig) -> None:
    """Copy the layers `source.layers` of a teacher, and all its other weights except the token vectors."""
    count = len(teacher.layers)
    for name in ("hidden_size", "num_attention_heads", "intermediate_size"):
        ours, theirs = getattr(student.config, name), getattr(teacher.config, name)
        if ours != theirs:
            raise InputError(f"start.layers: the student's {name} is {ours}, the teacher's {theirs}")
    if len(source.layers) != len(student.layers) or not all(0 <= n < count for n in source.layers):
        raise InputError(
            f"start.layers: expected {len(student.layers)} numbers from 0 to {count - 1}, one for each layer"
        )
    rows, teacher_rows = (len(model.embeddings.position.weight) for model in (student, teacher))
    if rows > teacher_rows:
        raise InputError(f"start.layers: max_position_embeddings is {rows}, the teacher's {teacher_rows}")
    buckets = [len(model.relative_bias.table.weight) for model in (student, teacher)]
    if buckets[0] != buckets[1]:
        raise InputError(f"start.layers: {buckets[0]} relative positions, the teacher has {buckets[1]}")
    for layer, number in zip(student.layers, source.layers, strict=True):
        layer.load_state_dict(teacher.layers[number].state_dict())
    student.embeddings.norm.load_state_dict(teacher.embeddings.norm.state_dict())
    student.relative_bias.load_state_dict(teacher.relative_bias.state_dict())
    with torch.no_grad():
        student.embeddings.position.weight.copy_(teacher.embeddings.position.weight[:rows])


def average_token_vectors(teacher: Encoder, backend: Backend, tokenizer: Tokenizer) -> Tensor:
    """Compute the student's initial token vectors from a teacher's vectors of width D.

    The teacher's tokenizer splits each of the student's tokens; the mean of the vectors of these parts is the
    initial vector, 0 if there are none. Returns (student's vocabulary size, D).
    """
    table = teacher.embeddings.token.weight.detach()
    vocabulary = backend.get_vocab()
    result = torch.zeros(tokenizer.vocab_size, table.shape[1])
    for number in range(tokenizer.vocab_size):
        token = tokenizer.id_to_token(number)
        if token in SPECIAL_TOKENS:
            ids = [vocabulary[name] for name in _SPECIAL.get(token, ()) if name in vocabulary]
        else:
            ids = _teacher_ids(token, backend, vocabulary)
        if ids:
            result[number] = table[torch.tensor(ids)].mean(0)
    return result


def _teacher_ids(token: str, backend: Backend, vocabulary: dict[str, int]) -> list[int]:
    """Split a student's token with the teacher's tokenizer, and return the ids of the parts."""
    if token.startswith(_SPACE):
        text = token.removeprefix(_SPACE)
        return backend.encode(text, add_special_tokens=False).ids if text else []
    # WordPiece marks the inside of a word.
    if f"##{token}" in vocabulary:
        return [vocabulary[f"##{token}"]]
    return backend.encode(token, add_special_tokens=False).ids
