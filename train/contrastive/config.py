"""Configuration of contrastive training, such as `configs/contrastive.yaml` or `configs/meaning.yaml`."""

from __future__ import annotations

from dataclasses import dataclass, field

from simllm.errors import InputError
from simllm.model.config import HeadConfig
from train.distill.config import ImitationConfig
from train.runtime.config import MAY_BE_ZERO, TrainingConfig


@dataclass(frozen=True, kw_only=True)
class PositivesConfig:
    """One source of positive pairs.

    Its files are of one of three kinds:

    - JSON lines, each with a pair of texts and perhaps a hard negative.
    - Plain lines, each with one text, which is paired with a rule-made rewording, or with itself. The two
      copies of a text get different embeddings through word dropout and the model's dropout (Gao et al.,
      "SimCSE", 2021).
    - Meaning items.
    """

    source: str  # file or glob pattern: plain lines, or JSON lines with pairs
    share: float  # share of the pairs in an update that come from this source
    word_dropout: float = 0.0  # share of words removed from both texts; with `rewording`, from the second
    rewording: bool = False  # whether the second text of each pair is reworded by rule
    hard_negatives: int = 0  # hard negatives per pair; those that the file lacks are made by rule
    items: bool = False  # whether the file holds meaning items, whose fields are fixed
    fields: tuple[str, ...] = ("a", "b")  # fields of the two texts and of a hard negative; (): plain lines
    only: dict[str, tuple[str, ...]] = field(default_factory=dict)  # wanted values of fields in JSON lines
    leave_out: dict[str, tuple[str, ...]] = field(default_factory=dict)  # unwanted values of fields
    max_words: int = 256  # longer texts are left out
    min_overlap: float = 0.0  # pairs with a lower word overlap (Jaccard similarity) are left out
    max_overlap: float = 1.0  # pairs with a higher word overlap are left out

    def __post_init__(self) -> None:
        if len(self.fields) not in (0, 2, 3):
            raise InputError(f"fields must name two or three fields or none, not {len(self.fields)}")
        if not (self.share > 0 and self.max_words > 0 and self.hard_negatives >= 0):
            raise InputError("share and max_words must be positive, hard_negatives not negative")
        if not 0 <= self.word_dropout < 1:
            raise InputError("word_dropout must be from 0 to below 1")
        if not 0 <= self.min_overlap <= self.max_overlap <= 1:
            raise InputError("min_overlap and max_overlap must be from 0 to 1")
        if (self.items or not self.fields) and (self.min_overlap, self.max_overlap) != (0, 1):
            raise InputError("min_overlap and max_overlap need pairs, but the source has lines or items")
        if self.items and (self.rewording or self.only or self.leave_out):
            raise InputError("rewording, only and leave_out do not apply to items")


@dataclass(frozen=True, kw_only=True)
class RatedPairsConfig:
    """A ranking loss over text pairs whose similarity people have rated."""

    sources: tuple[str, ...]  # rated files or glob patterns; only ratings within one file are compared
    fields: tuple[str, ...]  # fields of the two texts and of the rating
    # Values that a field must not have.
    leave_out: dict[str, tuple[str, ...]] = field(default_factory=dict)
    pairs: int  # number of pairs per update
    weight: float  # weight of this loss, beside `info_nce_weight` and `triplet_weight`

    def __post_init__(self) -> None:
        if len(self.fields) != 3:
            raise InputError(f"fields must name three fields, not {len(self.fields)}")
        if not (self.pairs > 0 and self.weight > 0):
            raise InputError("pairs and weight must be positive")


@dataclass(frozen=True, kw_only=True)
class LexicalTeacherConfig:
    """Distillation from the lexical teacher."""

    source: str  # file or glob pattern of pairs, such as references and generated summaries
    fields: tuple[str, ...]  # fields of the two texts
    max_words: int = 256  # longer texts are left out
    pairs: int  # number of pairs per update; the first texts of the positives are compared, too
    weight: float  # weight of this loss, beside `info_nce_weight` and `triplet_weight`

    def __post_init__(self) -> None:
        if len(self.fields) != 2:
            raise InputError(f"fields must name two fields, not {len(self.fields)}")
        if not (self.pairs > 0 and self.weight > 0):
            raise InputError("pairs and weight must be positive")


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig:
    """Permuted language modelling, as in MPNet, as an auxiliary task."""

    texts: str  # file or glob pattern of cleaned texts, one per line
    update_tokens: int  # approximate tokens of text per update; each process takes its part as one batch
    predict_probability: float  # share of a text's tokens that are predicted
    weight: float  # weight of this loss, beside `info_nce_weight` and `triplet_weight`

    def __post_init__(self) -> None:
        if not (self.update_tokens > 0 and self.weight > 0):
            raise InputError("update_tokens and weight must be positive")
        if not 0 < self.predict_probability < 1:
            raise InputError("predict_probability must be between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class MeaningSourceConfig:
    """One source of labelled text pairs for the meaning head."""

    source: str  # file or glob pattern: plain lines for rule-made pairs, JSON lines of pairs or words
    share: float  # share of the pairs in an update that come from this source
    # three fields: two texts and a label; two fields: texts with the same meaning; one or none: single
    # texts, from which pairs are made by rule
    fields: tuple[str, ...] = ()
    items: bool = False  # whether the file holds meaning items, whose fields are fixed
    same: tuple[str, ...] = ("same",)  # labels of pairs with the same meaning
    different: tuple[str, ...] = ("different",)  # labels of other pairs; all other labels are left out
    # files of sentences: `source` has pairs of words, which are put into these sentences; (): pairs of texts
    sentences: tuple[str, ...] = ()
    only: dict[str, tuple[str, ...]] = field(default_factory=dict)  # wanted values of fields in JSON lines
    leave_out: dict[str, tuple[str, ...]] = field(default_factory=dict)  # unwanted values of fields
    max_words: int = 40  # longer texts are left out

    def __post_init__(self) -> None:
        if len(self.fields) > 3:
            raise InputError(f"fields must name up to three fields, not {len(self.fields)}")
        if not (self.share > 0 and self.max_words > 0):
            raise InputError("share and max_words must be positive")
        if self.sentences and len(self.fields) < 2:
            raise InputError("sentences need pairs of words: name their fields")
        if self.items and (self.fields or self.only or self.leave_out):
            raise InputError("fields, only and leave_out do not apply to items")


@dataclass(frozen=True, kw_only=True)
class MeaningConfig:
    """Training of the meaning head together with the encoder."""

    head: HeadConfig
    sources: tuple[MeaningSourceConfig, ...]
    pairs: int  # number of pairs per update
    weight: float  # weight of this loss, beside `info_nce_weight` and `triplet_weight`
    # The model folder whose head is the start of training; by default, that of the initial model.
    start: str | None = None

    def __post_init__(self) -> None:
        if not self.sources:
            raise InputError("meaning.sources must not be empty")
        if self.head.graded:
            raise InputError("meaning.head.graded: train.release --grades fits the graded output afterwards")
        if not (self.pairs > 0 and self.weight > 0):
            raise InputError("pairs and weight must be positive")


@dataclass(frozen=True, kw_only=True)
class ContrastiveConfig(TrainingConfig):
    """All settings of a run of contrastive training."""

    model: str  # the model folder to start from
    positives: tuple[PositivesConfig, ...] = ()
    rated: tuple[RatedPairsConfig, ...] = ()
    overlap: LexicalTeacherConfig | None = None
    exclude: tuple[str, ...] = ()  # rated files; training texts that occur in them are left out
    dev: tuple[str, ...] = ()  # rated files for the criterion that chooses the best model
    dev_comments: str  # cleaned comments, one per line, for the same criterion
    hold_out_contrast: bool  # whether to train without the words that decide the contrast set (a test)
    temperature: float  # of the softmax over cosine similarities
    hard_negative_weight: float  # weight of a hard negative in InfoNCE; other negatives have weight 1
    pairs: int  # number of pairs per update; for InfoNCE, the texts of the other pairs are negatives
    chunk_tokens: int  # tokens that are embedded at once, padding included
    cache_gradients: bool  # true: keep one chunk in memory at a time, and embed each chunk twice
    language_model: LanguageModelConfig | None = None
    # weight of a loss that keeps the similarities between texts close to those of the initial model
    anchor_weight: float = field(default=0.0, metadata=MAY_BE_ZERO)
    meaning: MeaningConfig | None = None
    # meaning items (file or glob pattern) for the criterion that chooses the best model; only those of the
    # split "dev" are used
    dev_items: str | None = None
    # whether only the meaning head is trained; no other loss is computed, and the encoder stays as it is
    head_only: bool = False
    # weight of the InfoNCE loss, which compares the texts of each pair with the texts of all other pairs
    info_nce_weight: float = field(default=1.0, metadata=MAY_BE_ZERO)
    # weight of the triplet loss, which compares the texts of each pair with the hard negatives of this pair
    triplet_weight: float = field(default=0.0, metadata=MAY_BE_ZERO)
    # the number by which the triplet loss divides differences of cosines
    triplet_temperature: float = 0.1
    # texts whose embeddings the model learns from larger encoders; the keys are those of distillation
    imitation: ImitationConfig | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.positives or self.head_only):
            raise InputError("positives must not be empty")
        if self.head_only and (not self.meaning or self.language_model or self.imitation):
            raise InputError("head_only needs meaning, and neither language_model nor imitation")
        if self.triplet_weight and not any(
            source.hard_negatives or len(source.fields) == 3 for source in self.positives
        ):
            raise InputError("triplet_weight needs positives with hard_negatives or with a third field")
        losses = self.info_nce_weight + self.triplet_weight
        if not (losses or self.head_only or (self.imitation and self.anchor_weight)):
            raise InputError(
                "info_nce_weight and triplet_weight must not both be 0 without imitation and anchor_weight"
            )
