"""The graded output of a meaning head: how similar two texts are as people grade it, from 0 to 1.

It is the sigmoid of a linear function of the head's features of the pair and of the cosine of both
embeddings. `fit_grades` fits this function to graded pairs when the rest of the model is finished. Neither
more layers, nor grades by a larger encoder, nor a loss that trains the head's other layers, too, agreed
clearly better with people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from simllm.errors import InputError
from simllm.evaluation import ratings
from simllm.model.network import MeaningHead, get_pooling, of_last_layer
from simllm.model.saved_model import SavedModel
from simllm.model.torch_engine import TorchEngine, pad
from simllm.scoring.embedding import batch_slices
from simllm.text_cleaning import clean
from train.contrastive.meaning_pairs import MeaningPair
from train.corpus import decontaminate
from train.corpus.sources import match_files

_UPDATES, _BATCH, _LEARNING_RATE, _WEIGHT_DECAY = 700, 256, 3e-3, 3.0
_SEED = 1
_FEWEST = 20  # pairs
_CHUNK = 2048  # tokens of one text of each pair that are embedded at once, padding included
_OUTPUT = ("graded.", "cosine_weight")  # how the names of the weights of the graded output begin


@dataclass(frozen=True, kw_only=True)
class GradedSourceConfig:
    """Text pairs with grades of similarity."""

    source: str  # file or glob pattern of JSON lines
    fields: tuple[str, ...] = ("a", "b", "score")  # of the two texts and of the grade
    # Values that a field must not have.
    leave_out: dict[str, tuple[str, ...]] = field(default_factory=dict)
    scale: tuple[float, ...] = (0.0, 1.0)  # the grades that become 0 and 1; others are clipped

    def __post_init__(self) -> None:
        if len(self.fields) != 3:
            raise InputError(f"fields must name three fields, not {len(self.fields)}")
        if len(self.scale) != 2 or not self.scale[0] < self.scale[1]:
            raise InputError("scale must be the lowest and the highest grade")


@dataclass(frozen=True, kw_only=True)
class GradesConfig:
    """All settings of the graded output, such as `configs/grades.yaml`."""

    sources: tuple[GradedSourceConfig, ...]
    exclude: tuple[str, ...] = ()  # rated files; pairs with a text that occurs in them are left out

    def __post_init__(self) -> None:
        if not self.sources:
            raise InputError("sources must not be empty")


def read_graded_pairs(config: GradesConfig) -> list[MeaningPair]:
    """Read all pairs; their labels are grades from 0 to 1."""
    excluded = decontaminate.read_excluded(config.exclude)
    pairs = []
    for source in config.sources:
        low, high = source.scale
        read = [ratings.load(file, source.fields, source.leave_out) for file in match_files(source.source)]
        found = [
            MeaningPair(clean(a), clean(b), float(np.clip((grade - low) / (high - low), 0, 1)))
            for each in read
            for a, b, grade in zip(each.references, each.candidates, each.values.tolist(), strict=True)
        ]
        kept = [pair for pair in found if pair.first not in excluded and pair.second not in excluded]
        if not kept:
            raise InputError(f"graded {source.source!r}: no pair is left")
        pairs += kept
    return pairs


def with_graded_output(model: SavedModel) -> MeaningHead:
    """Copy the meaning head of a model, with a new graded output: a rising function of the cosine alone."""
    if not (model.head and model.head_config):
        raise InputError("a graded output needs a model with a meaning head")
    graded = MeaningHead(replace(model.head_config, graded=True), model.config)
    new = {name: weight for name, weight in graded.state_dict().items() if name.startswith(_OUTPUT)}
    graded.load_state_dict(model.head.state_dict() | new)
    return graded.eval()


def fit_grades(model: SavedModel, pairs: Sequence[MeaningPair]) -> MeaningHead:
    """Return the meaning head of a model with a graded output fitted to pairs, whose labels are grades from 0
    to 1.

    The loss is the mean cross entropy. The model itself stays as it is.
    """
    if len(pairs) < _FEWEST:
        raise InputError(f"{len(pairs)} graded pairs are too few; {_FEWEST} or more are needed")
    random = torch.Generator().manual_seed(_SEED)
    head = with_graded_output(model)
    features, cosines = compute_features(model, pairs)
    # Of equal spread, so that one learning rate suits all.
    mean, spread = features.mean(0), features.std(0).clamp(min=1e-2)
    features, grades = (features - mean) / spread, torch.tensor([pair.label for pair in pairs])
    output, weight = head.graded, head.cosine_weight
    adam = torch.optim.AdamW(
        [
            {"params": output.weight, "weight_decay": _WEIGHT_DECAY},
            {"params": [output.bias, weight], "weight_decay": 0.0},
        ],
        lr=_LEARNING_RATE,
    )
    falling = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.0, _UPDATES)
    for _ in range(_UPDATES):
        rows = torch.randint(len(pairs), (_BATCH,), generator=random)
        logits = head.grade(features[rows], cosines[rows]).squeeze(1)
        F.binary_cross_entropy_with_logits(logits, grades[rows]).backward()
        adam.step()
        falling.step()
        adam.zero_grad()
    with torch.no_grad():
        output.weight.div_(spread)
        output.bias.sub_(output.weight @ mean)
    return head.requires_grad_(False)


@torch.no_grad()
def compute_features(model: SavedModel, pairs: Sequence[MeaningPair]) -> tuple[Tensor, Tensor]:
    """Compute the head's (n, 2 W) features of n pairs, and the (n,) cosines of their embeddings."""
    head, width, limit = model.head, model.config.hidden_size, model.config.max_length
    assert head
    engine, pool = TorchEngine(model.encoder), get_pooling(model.info.pooling)
    ids = model.tokenizer.encode([text for pair in pairs for text in (pair.first, pair.second)])
    ids = [model.tokenizer.truncate(text, limit) for text in ids]
    sizes = [max(map(len, both)) for both in zip(ids[::2], ids[1::2], strict=True)]
    order = sorted(range(len(pairs)), key=sizes.__getitem__)
    features, cosines = torch.empty(len(pairs), 2 * head.config.width), torch.empty(len(pairs))
    for rows in batch_slices([range(sizes[i]) for i in order], _CHUNK):
        chosen = order[rows]
        n = len(chosen)
        tokens, mask = pad([ids[2 * i] for i in chosen] + [ids[2 * i + 1] for i in chosen])
        states = engine(tokens, mask, head.config.encoder_layers)
        projected = head.project(states)
        features[chosen] = head.features(projected[:n], mask[:n], projected[n:], mask[n:])
        embeddings = pool(of_last_layer(states, width), mask)
        cosines[chosen] = F.cosine_similarity(embeddings[:n], embeddings[n:])
    return features, cosines
