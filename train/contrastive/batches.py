"""The batches of the contrastive stage: tokenized texts of each update, and their relations."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from simllm.evaluation import contrast
from simllm.model.checkpoint import Checkpoint
from simllm.perturb.summaries import lexicon
from train.contrastive.lexical_teacher import LexicalTeacher
from train.contrastive.positive_pairs import PositivePair, PositiveSource, draw_pairs, mark_same_meaning
from train.contrastive.rated_pairs import RatedBatch, RatedSource
from train.corpus import decontaminate
from train.corpus.sources import match_files
from train.runtime.config import ContrastiveConfig, PositivesConfig
from train.runtime.prefetch import Prefetcher

_FREQUENCY_PAIRS = 50_000  # pairs in which the document frequencies of the lexical teacher are counted


@dataclass(frozen=True)
class ContrastiveBatch:
    """The N tokenized texts of an update.

    The texts are B first texts of pairs, B second texts, H hard negatives, further texts for the
    lexical teacher, and for each rated source its first and its second texts.

    Attributes:
        ids: The token ids of each text.
        ends: 0 and the end of each of these parts.
        same_meaning: (B, B) bool, see `mark_same_meaning`.
        false_hard_negatives: (B, H) bool, see `mark_same_meaning`.
        rated: The pairs of each rated source.
        cosines: (C, C) cosines of the lexical teacher between the first texts and all texts after the
            hard negatives; None without the teacher.
    """

    ids: list[list[int]]
    ends: list[int]
    same_meaning: Tensor
    false_hard_negatives: Tensor
    rated: list[RatedBatch]
    cosines: Tensor | None


class ContrastiveBatches:
    """A sequence of batches; batch n depends on the configuration and n only, and is prefetched."""

    def __init__(self, config: ContrastiveConfig, start: Checkpoint) -> None:
        """Read all sources.

        Args:
            config: The configuration of the run.
            start: The model folder to start from, with the tokenizer.

        Raises:
            InputError: A source cannot be read or has no usable pair.
        """
        self.config, self.start = config, start
        excluded = self.excluded = decontaminate.read_excluded(config.exclude)
        self.lexicon = words = lexicon.load(
            contrast.deciding_word_pairs() if config.hold_out_contrast else ()
        )
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
                start.tokenizer.encode(_texts(sample)), start.encoder.config.vocab_size
            )
        self._prefetcher = Prefetcher(self._make_batch)

    def __getitem__(self, number: int) -> ContrastiveBatch:
        return self._prefetcher[number]

    def pairs(self, number: int) -> list[PositivePair]:
        """Return the positive pairs of an update."""
        return draw_pairs(self.positives, self.config.pairs, self.config.seed, number)

    def _make_batch(self, number: int) -> ContrastiveBatch:
        """Draw and tokenize the texts of an update, and mark texts with the same meaning."""
        config, pairs = self.config, self.pairs(number)
        rated = [source.draw(config.seed, number) for source in self.rated]
        count = config.overlap.pairs if config.overlap else 0
        parts = [
            [pair.first for pair in pairs],
            [pair.second for pair in pairs],
            [negative for pair in pairs for negative in pair.negatives],
            _texts(draw_pairs(self.teacher_sources, count, config.seed, number)) if count else [],
            *(texts for pairs_ in rated for texts in (pairs_.first, pairs_.second)),
        ]
        tokenizer, limit = self.start.tokenizer, self.start.encoder.config.max_length
        whole = tokenizer.encode([text for part in parts for text in part])
        ids = [tokenizer.truncate(text, limit) for text in whole]
        ends = np.cumsum([0, *map(len, parts)]).tolist()
        compared = ids[: ends[1]] + ids[ends[3] :]
        cosines = torch.from_numpy(self.teacher.cosines(compared)) if self.teacher else None
        same_meaning, false_hard_negatives = map(torch.from_numpy, mark_same_meaning(pairs))
        return ContrastiveBatch(ids, ends, same_meaning, false_hard_negatives, rated, cosines)


def _texts(pairs: list[PositivePair]) -> list[str]:
    """Return both texts of each pair, in order."""
    return [text for pair in pairs for text in (pair.first, pair.second)]


def input_digest(config: ContrastiveConfig) -> str:
    """Return the SHA-256 of all input files: sources, excluded texts, dev files and word lists."""
    patterns = [source.source for source in config.positives]
    patterns += [pattern for source in config.rated for pattern in source.sources]
    patterns += [config.overlap.source] if config.overlap else []
    for source in config.meaning.sources if config.meaning else ():
        patterns += [source.source, *source.sentences]
    patterns += [config.language_model.texts] if config.language_model else []
    patterns += [*config.exclude, *config.dev, config.dev_comments]
    files = [file for pattern in patterns for file in match_files(pattern)]
    digest = hashlib.sha256()
    for file in [*files, contrast.CONTRAST_SET, *sorted(lexicon.FOLDER.iterdir())]:
        with file.open("rb") as data:
            digest.update(hashlib.file_digest(data, "sha256").digest())
    return digest.hexdigest()
