"""The batches of contrastive training: tokenized texts, and which of the texts have the same meaning."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from simllm.evaluation import contrast
from simllm.evaluation.contrast import deciding_word_pairs
from simllm.model.saved_model import SavedModel
from simllm.perturb.summaries import lexicon
from train.contrastive.config import ContrastiveConfig, PositivesConfig
from train.contrastive.lexical_teacher import LexicalTeacher
from train.contrastive.pairs import (
    PositivePair,
    PositiveSource,
    RatedBatch,
    RatedSource,
    draw_pairs,
    mark_same_meaning,
)
from train.corpus import decontaminate
from train.corpus.sources import input_files
from train.runtime.batching import Prefetcher

# Text pairs from which the lexical teacher computes token frequencies.
_FREQUENCY_PAIRS = 50_000


@dataclass(frozen=True)
class ContrastiveBatch:
    """The N tokenized texts of one update, and the relations between them.

    The texts are one list, divided into sections:

    - 0 and 1: the first texts and the second texts of B positive pairs.
    - 2: their H hard negatives.
    - 3: further texts for the lexical teacher alone.
    - 4 and 5: the first texts and the second texts of pairs with human ratings; two more sections for each
      further source of such pairs.

    Attributes:
        ends: The bounds of the sections: section k is `ids[ends[k] : ends[k + 1]]`.
        same_meaning: (B, B) bool: whether the first text of pair i and the second text of pair j are known to
            have the same meaning.
        false_hard_negatives: (B, H) bool: whether the first text of pair i and hard negative j are known to
            have the same meaning.
        negative_pairs: (H,) index of the positive pair to which each hard negative belongs.
        cosines: (C, C) similarities by the lexical teacher between the texts of section 0 and of all sections
            from 3 on; None without this teacher.
    """

    ids: list[list[int]]
    ends: list[int]
    same_meaning: Tensor
    false_hard_negatives: Tensor
    negative_pairs: Tensor
    rated: list[RatedBatch]
    cosines: Tensor | None


class ContrastiveBatches:
    """The sequence of batches, prepared in advance by a background thread.

    Batch n depends only on n, the configuration, the input files and the initial model.
    """

    def __init__(self, config: ContrastiveConfig, start: SavedModel) -> None:
        self.config, self.start = config, start
        excluded = self.excluded = decontaminate.read_excluded(config.exclude)
        self.lexicon = words = lexicon.load(deciding_word_pairs() if config.hold_out_contrast else ())
        self.positives = [PositiveSource(source, excluded, words) for source in config.positives]
        self.rated = [RatedSource(source, excluded) for source in config.rated]
        self.teacher_sources: list[PositiveSource] = []
        self.teacher: LexicalTeacher | None = None
        if config.overlap:
            overlap = config.overlap
            source = PositivesConfig(
                source=overlap.source, share=1, fields=overlap.fields, max_words=overlap.max_words
            )
            self.teacher_sources = [PositiveSource(source, excluded, words)]
            sample = draw_pairs(self.teacher_sources, _FREQUENCY_PAIRS, config.seed, 0)
            self.teacher = LexicalTeacher(
                start.tokenizer.encode(_list_texts(sample)), start.encoder.config.vocab_size
            )
        self._prefetcher = Prefetcher(self._make_batch)

    def __getitem__(self, number: int) -> ContrastiveBatch:
        return self._prefetcher[number]

    def pairs(self, number: int) -> list[PositivePair]:
        """Draw the positive pairs of batch `number`, counted from 0."""
        return draw_pairs(self.positives, self.config.pairs, self.config.seed, number)

    def _make_batch(self, number: int) -> ContrastiveBatch:
        config, pairs = self.config, self.pairs(number)
        rated = [source.draw(config.seed, number) for source in self.rated]
        count = config.overlap.pairs if config.overlap else 0
        parts = [
            [pair.first for pair in pairs],
            [pair.second for pair in pairs],
            [negative for pair in pairs for negative in pair.negatives],
            _list_texts(draw_pairs(self.teacher_sources, count, config.seed, number)) if count else [],
            *(texts for pairs_ in rated for texts in (pairs_.first, pairs_.second)),
        ]
        tokenizer, limit = self.start.tokenizer, self.start.encoder.config.max_length
        whole = tokenizer.encode([text for part in parts for text in part])
        ids = [tokenizer.truncate(text, limit) for text in whole]
        ends = np.cumsum([0, *map(len, parts)]).tolist()
        compared = ids[: ends[1]] + ids[ends[3] :]
        cosines = torch.from_numpy(self.teacher.cosines(compared)) if self.teacher else None
        same_meaning, false_hard_negatives = map(torch.from_numpy, mark_same_meaning(pairs))
        counts = torch.tensor([len(pair.negatives) for pair in pairs])
        negative_pairs = torch.arange(len(pairs)).repeat_interleave(counts)
        return ContrastiveBatch(ids, ends, same_meaning, false_hard_negatives, negative_pairs, rated, cosines)


def _list_texts(pairs: list[PositivePair]) -> list[str]:
    """Return both texts of each pair in one list: first, second, first, second, and so on."""
    return [text for pair in pairs for text in (pair.first, pair.second)]


def hash_inputs(config: ContrastiveConfig) -> str:
    """Compute one SHA-256 over all data files of a run, including the word lists and the contrast set.

    A stopped run is resumed only if this hash has not changed.
    """
    patterns = [source.source for source in config.positives]
    patterns += [pattern for source in config.rated for pattern in source.sources]
    patterns += [config.overlap.source] if config.overlap else []
    for source in config.meaning.sources if config.meaning else ():
        patterns += [source.source, *source.sentences]
    patterns += [config.language_model.texts] if config.language_model else []
    patterns += [source.source for source in config.imitation.texts] if config.imitation else []
    patterns += [*config.exclude, *config.dev, config.dev_comments]
    patterns += [config.dev_items] if config.dev_items else []
    files = [file for pattern in patterns for file in input_files(pattern)]
    # Of the contents in this order, not of the names; but a renamed word list can change the order.
    digest = hashlib.sha256()
    for file in [*files, contrast.CONTRAST_SET, *sorted(lexicon.FOLDER.iterdir())]:
        with file.open("rb") as data:
            digest.update(hashlib.file_digest(data, "sha256").digest())
    return digest.hexdigest()
