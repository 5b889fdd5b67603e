"""The batches of contrastive training: positive and rated pairs, and which texts have the same meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from simllm.errors import InputError
from simllm.evaluation import contrast, ratings
from simllm.evaluation.contrast import deciding_word_pairs
from simllm.io.reading import read_lines, text_under
from simllm.model.saved_model import SavedModel
from simllm.perturb.summaries import lexicon
from simllm.perturb.summaries.lexicon import Lexicon
from simllm.perturb.summaries.meaning_changes import change
from simllm.perturb.summaries.rewording import reword
from simllm.text_cleaning import clean
from train.contrastive.config import ContrastiveConfig, PositivesConfig, RatedPairsConfig
from train.contrastive.lexical_neighbours import LexicalTeacher
from train.contrastive.meaning_pairs import MeaningItem, read_items
from train.corpus import decontaminate
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.deduplicate import identity
from train.corpus.sources import input_files, match_files, select_rows
from train.runtime.batching import Prefetcher, combined_seed
from train.tokens.shards import digest

_FREQUENCY_PAIRS = 50_000  # text pairs from which the lexical teacher computes token frequencies


def drop_words(text: str, share: float, random: np.random.Generator) -> str:
    """Remove each word of a text with probability `share`, but leave at least one word."""
    if not share:
        return text
    words = text.split()
    kept = [word for word, draw in zip(words, random.random(len(words)), strict=True) if draw >= share]
    return " ".join(kept) or words[random.integers(len(words))]


@dataclass(frozen=True)
class PositivePair:
    """A positive pair, perhaps with hard negatives for its first text; `group` is a hash."""

    first: str
    second: str
    group: bytes
    negatives: tuple[str, ...] = ()


class PositiveSource:
    """A source from which positive pairs are drawn at random."""

    def __init__(self, config: PositivesConfig, excluded: ExcludedTexts, lexicon: Lexicon) -> None:
        self.config, self.excluded, self.lexicon = config, excluded, lexicon
        self.texts: list[str] = []
        self.items: list[MeaningItem] = []
        if config.items:
            self.items = read_items(config.source, "train", excluded, lexicon.held_out_words)
        elif not config.fields:
            files = match_files(config.source)
            cleaned = (clean(line) for file in files for _, line in read_lines(file))
            self.texts = [text for text in cleaned if self._fits(text)]
        self.pairs = [
            pair
            for pair in (_read_pairs(config) if config.fields and not config.items else ())
            if self._fits(pair.first) and self._fits(pair.second)
            if not any(text in excluded for text in (pair.first, pair.second, *pair.negatives))
        ]
        if not len(self):
            raise InputError(f"positives {config.source!r}: no pair is left")

    def __len__(self) -> int:
        return len(self.texts or self.items or self.pairs)

    def draw(self, random: np.random.Generator) -> PositivePair:
        """Draw a positive pair, and edit it as configured: rewording, more hard negatives, word dropout."""
        config, pair = self.config, self._draw_unchanged(random)
        first, second, negatives = pair.first, pair.second, dict.fromkeys(pair.negatives)
        if config.rewording:
            second = reword(second, self.lexicon, random)
        # The rules cannot change every text, and may repeat a change: there can be fewer.
        for _ in range(config.hard_negatives - len(negatives)):
            if changed := change(first, self.lexicon, random):
                negatives[changed[1]] = None
        share = config.word_dropout
        if not config.rewording:
            first = drop_words(first, share, random)
        return PositivePair(first, drop_words(second, share, random), pair.group, tuple(negatives))

    def _fits(self, text: str) -> bool:
        """Return whether a text has at least one word and at most `max_words`."""
        return bool(text) and text.count(" ") < self.config.max_words

    def _draw_unchanged(self, random: np.random.Generator) -> PositivePair:
        """Draw a pair of the files, two texts of a meaning item, or a single text paired with itself."""
        if self.items:
            item = self.items[random.integers(len(self.items))]
            negatives = random.permutation(item.different)[: self.config.hard_negatives]
            return PositivePair(*item.draw_same(random), identity(item.same[0]), tuple(map(str, negatives)))
        if self.pairs:
            pair = self.pairs[random.integers(len(self.pairs))]
            # Hard negatives belong to the first text: such a pair must keep its order.
            swap = not pair.negatives and random.random() < 0.5
            return PositivePair(pair.second, pair.first, pair.group) if swap else pair
        # Excluded texts are met here, not in the constructor, because checking all texts takes a minute.
        for number in random.integers(len(self.texts), size=100):
            text = self.texts[number]
            if text not in self.excluded:
                return PositivePair(text, text, identity(text))
        raise InputError(f"positives {self.config.source!r}: a hundred texts in a row are excluded")


def draw_pairs(sources: list[PositiveSource], count: int, seed: int, update: int) -> list[PositivePair]:
    """Draw the positive pairs of one update from sources, with probabilities proportional to their shares."""
    random = np.random.default_rng(combined_seed(seed, update))
    shares = np.array([source.config.share for source in sources])
    chosen = random.choice(len(sources), count, p=shares / shares.sum())
    return [sources[number].draw(random) for number in chosen]


def _read_pairs(config: PositivesConfig) -> list[PositivePair]:
    """Read the pairs of JSON lines whose word overlap is within the configured bounds."""
    pairs = []
    for where, row in select_rows(config.source, config.only, config.leave_out):
        first, second = (clean(text_under(row, field, where)) for field in config.fields[:2])
        if config.min_overlap <= _word_overlap(first, second) <= config.max_overlap:
            group = identity(str(row.get("group", first)))
            negatives = [clean(text_under(row, field, where)) for field in config.fields[2:] if field in row]
            pairs.append(PositivePair(first, second, group, tuple(negatives)))
    return pairs


def _word_overlap(first: str, second: str) -> float:
    """Return the Jaccard similarity of the texts' sets of words."""
    a, b = set(first.split()), set(second.split())
    return len(a & b) / max(1, len(a | b))


@dataclass(frozen=True)
class RatedBatch:
    """B text pairs with human ratings.

    Attributes:
        ratings: (B,) float32.
        sets: (B,) int64 index of each pair's file; only ratings from the same file are comparable.
    """

    first: list[str]
    second: list[str]
    ratings: np.ndarray
    sets: np.ndarray


class RatedSource:
    """A source of rated text pairs, from one or several files, without excluded texts."""

    def __init__(self, config: RatedPairsConfig, excluded: ExcludedTexts) -> None:
        self.config = config
        rows = [
            (clean(a), clean(b), rating, number)
            for number, file in enumerate(file for source in config.sources for file in match_files(source))
            for read in (ratings.load(file, config.fields, config.leave_out),)
            for a, b, rating in zip(read.references, read.candidates, read.values.tolist(), strict=True)
        ]
        self.rows = [row for row in rows if row[0] not in excluded and row[1] not in excluded]
        if not self.rows:
            raise InputError(f"rated {', '.join(config.sources)}: no pair is left")

    def draw(self, seed: int, update: int) -> RatedBatch:
        """Draw the rated pairs of one update."""
        # The 1 keeps the draw apart from that of the positive pairs.
        random = np.random.default_rng(combined_seed(seed, update, 1))
        chosen = random.integers(len(self.rows), size=self.config.pairs)
        first, second, values, sets = zip(*(self.rows[i] for i in chosen), strict=True)
        return RatedBatch(list(first), list(second), np.array(values, np.float32), np.array(sets))


def mark_same_meaning(pairs: Sequence[PositivePair]) -> tuple[np.ndarray, np.ndarray]:
    """Mark texts of B positive pairs and their H hard negatives that are known to have the same meaning.

    Returns (B, B) bool for the first text of pair i and the second text of pair j, and (B, H) bool for the
    first text of pair i and hard negative j.
    """
    numbers: dict[bytes | str, int] = {}

    def to_numbers(keys: Sequence[bytes | str]) -> np.ndarray:
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], int)

    group, first, second = (
        to_numbers(keys)
        for keys in ([p.group for p in pairs], [p.first for p in pairs], [p.second for p in pairs])
    )
    negatives = to_numbers([negative for pair in pairs for negative in pair.negatives])
    crossed = first[:, None] == second
    # Two pairs with a text or a group in common have four texts with the same meaning.
    same = (group[:, None] == group) | (first[:, None] == first) | (second[:, None] == second)
    same |= crossed | crossed.T
    # A hard negative that equals a text of a pair has the meaning of that pair, and of all pairs like it.
    own_negatives = (first[:, None] == negatives) | (second[:, None] == negatives)
    return same, (same.astype(np.float32) @ own_negatives) > 0


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
    return digest(*files, contrast.CONTRAST_SET, *sorted(lexicon.FOLDER.iterdir()))
