"""The student before training: an encoder with token vectors and, optionally, layers from a teacher.

The student has its own vocabulary. The teacher's tokenizer splits each of the student's tokens into one or
several tokens of the teacher. The mean of the teacher's vectors for these tokens is the initial vector of the
student's token. The teacher's layers can be copied if the student's layers have the same shape.
"""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer as Backend
from torch import Tensor

from simllm.errors import InputError
from simllm.model.encoder import Encoder
from simllm.model.model_config import ModelConfig
from simllm.model.tokenizer import SPECIAL_TOKENS, Tokenizer
from train.distill.bert_weights import load_encoder
from train.distill.config import StartConfig
from train.distill.load_teachers import load_tokenizer
from train.distill.pca_targets import compute_principal_axes

_SPACE = "▁"  # first character of a token at the start of a word
_SPECIAL = {"<s>": ("<s>", "[CLS]"), "</s>": ("</s>", "[SEP]"), "<mask>": ("<mask>", "[MASK]")}


def make_student(config: ModelConfig, tokenizer: Tokenizer, source: StartConfig | None, seed: int) -> Encoder:
    """Make an untrained student, with random weights or weights from a teacher.

    Args:
        config: The shape of the student, such as its number of layers.
        tokenizer: The student's tokenizer.
        source: Settings that name the teacher (a larger encoder) and the layers to copy from it. None: all
            weights are random.
        seed: Seed for the random weights.

    Raises:
        InputError: The teacher cannot be loaded, is narrower than the student, or has layers of another
            shape.
    """
    torch.manual_seed(seed)
    student = Encoder(config)
    if source is None:
        return student
    folder = Path(source.teacher)
    teacher = load_encoder(folder)
    vectors = average_token_vectors(teacher, load_tokenizer(folder), tokenizer)
    if vectors.shape[1] > config.hidden_size:
        vectors = vectors @ torch.from_numpy(compute_principal_axes(vectors.numpy(), config.hidden_size))
    elif vectors.shape[1] < config.hidden_size:
        raise InputError(f"{folder}: has width {vectors.shape[1]}, the student {config.hidden_size}")
    with torch.no_grad():
        student.embeddings.token.weight.copy_(vectors)
    if source.layers:
        _copy_layers(teacher, student, source)
    return student


def _copy_layers(teacher: Encoder, student: Encoder, source: StartConfig) -> None:
    """Copy chosen layers of a teacher, and its other weights except the token vectors, into a student.

    Args:
        teacher: The encoder to copy from.
        student: The encoder to change.
        source: The settings. `source.layers` has, for each layer of the student, the index of the teacher's
            layer to copy.

    Raises:
        InputError: The two encoders differ in shape, or `source.layers` does not have one valid index for
            each layer of the student.
    """
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
    """Compute the student's initial token vectors from a teacher's token vectors.

    The teacher's tokenizer splits each of the student's tokens into one or several tokens of the teacher. The
    mean of the teacher's vectors for these tokens is the initial vector of the student's token. For example,
    if the teacher splits "walking" into "walk" and "##ing", the student's token for "walking" gets the mean
    of their two vectors. A token inside a word, such as "ing", gets the vector of "##ing" if the teacher has
    this token.

    Args:
        teacher: The teacher, whose token vectors have width D.
        backend: The teacher's tokenizer.
        tokenizer: The student's tokenizer.

    Returns:
        (student's vocabulary size, D) vectors. A vector is 0 if the student's token has no counterpart among
        the teacher's tokens.
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
    """Split a student's token with the teacher's tokenizer, and return the ids of the teacher's tokens.

    Args:
        token: The student's token. It starts with "▁" if it starts a word.
        backend: The teacher's tokenizer.
        vocabulary: A dict from the teacher's tokens to their ids.
    """
    if token.startswith(_SPACE):
        text = token.removeprefix(_SPACE)
        return backend.encode(text, add_special_tokens=False).ids if text else []
    if f"##{token}" in vocabulary:  # WordPiece marks the inside of a word
        return [vocabulary[f"##{token}"]]
    return backend.encode(token, add_special_tokens=False).ids
