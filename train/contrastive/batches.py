"""What the contrastive stage sees in an update: texts, tokenized, and what is known of them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from simllm.evaluation import contrast
from simllm.model.checkpoint import Checkpoint
from simllm.perturb.summaries import lexicon
from train.contrastive.lexical_teacher import Overlap
from train.contrastive.positive_pairs import Pair, Positives, draw, same_meaning
from train.contrastive.rated_pairs import Drawn, Rated
from train.corpus import decontaminate
from train.corpus.sources import matching
from train.runtime.config import ContrastiveConfig, PositivesConfig
from train.runtime.prefetch import Ahead

_COUNTED = 50_000  # pairs that document frequencies are taken from


@dataclass(frozen=True)
class Update:
    """N texts, tokenized: firsts, seconds, hard negatives, texts to compare, sides of the rated."""

    ids: list[list[int]]
    ends: list[int]  # of each of these parts; each rated source has two
    same: Tensor  # (B, B) see `same_meaning`
    known: Tensor  # (B, H)
    rated: list[Drawn]
    cosines: Tensor | None  # by shared words, of the firsts and of all texts after the hard negatives


class Updates:
    """`updates[n]` is a function of the configuration and n; the next ones are made ahead."""

    def __init__(self, config: ContrastiveConfig, start: Checkpoint) -> None:
        """Read all sources; raises InputError for what is wrong with them."""
        self.config, self.start = config, start
        excluded = self.excluded = decontaminate.read(config.exclude)
        known = lexicon.load(contrast.held_out() if config.hold_out_contrast else ())
        self.positives = [Positives(source, excluded, known) for source in config.positives]
        self.rated = [Rated(source, excluded) for source in config.rated]
        self.compared, self.overlap = [], None
        if config.overlap:
            source = PositivesConfig(source=config.overlap.source, share=1, fields=config.overlap.fields)
            self.compared = [Positives(source, excluded, known)]
            some = draw(self.compared, _COUNTED, config.seed, 0)
            self.overlap = Overlap(start.tokenizer.encode(_texts(some)), start.encoder.config.vocab_size)
        self._ahead = Ahead(self._make)

    def __getitem__(self, number: int) -> Update:
        return self._ahead[number]

    def pairs(self, number: int) -> list[Pair]:
        """The pairs that mean the same."""
        return draw(self.positives, self.config.pairs, self.config.seed, number)

    def _make(self, number: int) -> Update:
        config, pairs = self.config, self.pairs(number)
        rated = [source.draw(config.seed, number) for source in self.rated]
        count = config.overlap.pairs if config.overlap else 0
        parts = [
            [pair.first for pair in pairs],
            [pair.second for pair in pairs],
            [negative for pair in pairs for negative in pair.negatives],
            _texts(draw(self.compared, count, config.seed, number)) if count else [],
            *(side for some in rated for side in (some.first, some.second)),
        ]
        tokenizer, limit = self.start.tokenizer, self.start.encoder.config.max_length
        whole = tokenizer.encode([text for part in parts for text in part])
        ids = [tokenizer.truncate(text, limit) for text in whole]
        ends = np.cumsum([0, *map(len, parts)]).tolist()
        compared = ids[: ends[1]] + ids[ends[3] :]
        cosines = torch.from_numpy(self.overlap.cosines(compared)) if self.overlap else None
        same, known = map(torch.from_numpy, same_meaning(pairs))
        return Update(ids, ends, same, known, rated, cosines)


def _texts(pairs: list[Pair]) -> list[str]:
    return [text for pair in pairs for text in (pair.first, pair.second)]


def digest(config: ContrastiveConfig) -> str:
    """SHA-256 of everything that is learned from, held out, and judged by."""
    patterns = [source.source for source in config.positives]
    patterns += [pattern for source in config.rated for pattern in source.sources]
    patterns += [config.overlap.source] if config.overlap else []
    patterns += [config.language_model.texts] if config.language_model else []
    patterns += [*config.exclude, *config.dev, config.dev_comments]
    found = [file for pattern in patterns for file in matching(pattern)]
    hashed = hashlib.sha256()
    for file in [*found, contrast.OWN, *sorted(lexicon.FOLDER.iterdir())]:
        with file.open("rb") as data:
            hashed.update(hashlib.file_digest(data, "sha256").digest())
    return hashed.hexdigest()
