"""The learned metric: it scores how close in meaning a candidate summary is to a reference summary."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

import simllm
from simllm.errors import InputError
from simllm.io import packages
from simllm.metrics.interface import Example, candidates_and_references
from simllm.model import code_model, saved_model
from simllm.model.config import SIMILARITIES, check_pooling
from simllm.model.saved_model import SavedModel, default_model
from simllm.scoring import embedding, sentences, token_matching
from simllm.scoring.code import AGAINST, CodeReader, FitScores, choose_against, code_pairs
from simllm.scoring.embedding import (
    EmbeddingScorer,
    Engine,
    MeaningScorer,
    PairScorer,
    Tokenized,
)
from simllm.scoring.scores import (
    CHUNK,
    EVEN,
    Pair,
    Scores,
    about_empty_pairs,
    about_percentiles,
    about_truncated,
    about_unreadable,
    chunks,
    concatenate,
    score_groups,
    score_in_chunks,
    text_list,
)
from simllm.scoring.sentences import Comparison, DividedText
from simllm.scoring.token_matching import Frequencies, TokenScorer

ENGINES = ("torch", "onnxruntime")


def load_engine(
    name: str | None, model: SavedModel, mode: str, device: str | None, with_head: bool
) -> Engine:
    """Prepare a model for scoring with the engine of this name; by default torch, if it is installed."""
    name = name or ENGINES[not packages.is_installed("torch")]
    if name not in ENGINES:
        raise InputError(f"engine {name!r}: expected one of {', '.join(ENGINES)}")
    if name == "onnxruntime":
        from simllm.model.onnx_engine import OnnxEngine

        return OnnxEngine(model, mode, device, with_head)
    with packages.require_torch_extra():
        from simllm.model.torch_engine import TorchEngine
    return TorchEngine.load(model, mode, device, with_head)


class SimLLM:
    """Learned metric that scores how close in meaning two texts are; it is loaded from a model folder.

    It can be used wherever a `simllm.metrics.Metric` is expected. Threads may share one instance.

    Examples:
        >>> metric = SimLLM()
        >>> metric.score(["adds two lists"], ["combines 2 arrays"]).values.shape
        (1,)
    """

    name = "simllm"

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        pooling: str | None = None,
        similarity: str | None = None,
        mode: str = "exact",
        on_long: str = "truncate",
        frequencies: Frequencies | None = None,
        device: str | None = None,
        long: str | None = None,
        prior: float = EVEN,
        engine: str | None = None,
    ) -> None:
        """Load a model folder.

        Args:
            model: The path of the model folder; by default the model that comes with the package.
            pooling: The function that turns the hidden states of a text's tokens into one embedding: `mean`,
                `cls` or `max`; by default that of the model folder.
            similarity: `cosine` and `inverse-euclidean` compare the embeddings of two texts. `precision`,
                `recall` and `f1` match each token with the most similar token of the other text. By default
                that of the model folder.
            mode: `exact` scores with a float32 copy of the encoder, and `fast` with a bfloat16 copy; where
                bfloat16 is slower than float32, `fast` warns and becomes `exact`. `plain` makes no copy, so
                that the scores follow the weights of an encoder that is being trained.
            on_long: The treatment of a text that is longer than the model's longest input: `truncate` cuts
                the text, `window` splits it into pieces that the model reads one by one, and `error` raises
                an error.
            frequencies: The number of texts that contain each token. `precision`, `recall` and `f1` use them
                to give rare tokens more weight; other similarities refuse them. By default, the texts that
                `score` gets as references are counted.
            device: The torch device, such as "cpu"; by default a GPU if there is one.
            long: The treatment of pairs in which a text has several sentences. `sentences` compares clause
                with clause, and lowers the score of a candidate that is longer than its reference. `whole`
                compares the texts as a whole, as always if neither text has several sentences. By default
                `sentences`, except with `precision`, `recall` and `f1`, which need `whole`.
            prior: The share of pairs with the same meaning that you expect, between 0 and 1. Of the pairs
                with `same` = 0.8, about 80% have the same meaning only if this share is right. The default
                0.5 is the share in the pairs on which the probabilities were calibrated.
            engine: The library that runs the networks: `torch`, or `onnxruntime`, which starts faster and
                knows only the mode `exact` on a CPU. Their scores differ by less than 1e-5. By default
                `torch` if it is installed.

        Raises:
            InputError: The folder is not a model folder, the device cannot be used on this machine, or
                another argument has no allowed value.
        """
        self.model = saved_model.load(default_model() if model is None else model)
        info = self.model.info
        self.pooling, self.similarity = pooling or info.pooling, similarity or info.similarity
        self.on_long, self.frequencies = on_long, frequencies
        self.longest = self.model.config.max_length  # tokens in one input of the model
        if on_long not in embedding.ON_LONG:
            raise InputError(f"on_long {on_long!r}: expected one of {', '.join(embedding.ON_LONG)}")
        for name in (self.pooling, info.pooling):
            check_pooling(name)
        self.by_token = self.similarity in token_matching.TOKEN_SIMILARITIES
        self.long = long or ("whole" if self.by_token else "sentences")
        if self.long not in sentences.LONG:
            raise InputError(f"long {long!r}: expected one of {', '.join(sentences.LONG)}")
        if self.by_token and self.long == "sentences":
            raise InputError(f"long {long!r}: similarity {self.similarity} matches the tokens of whole texts")
        self._similarity = SIMILARITIES.get(self.similarity)
        if not (self._similarity or self.by_token):
            names = ", ".join((*SIMILARITIES, *token_matching.TOKEN_SIMILARITIES))
            raise InputError(f"similarity {self.similarity!r}: expected one of {names}")
        if frequencies is not None and not self.by_token:
            by_token = ", ".join(token_matching.TOKEN_SIMILARITIES)
            raise InputError(f"frequencies go with a similarity of {by_token}, not with {self.similarity}")
        # Token matching (precision, recall, f1) does not use the meaning head.
        self.engine = load_engine(engine, self.model, mode, device, with_head=not self.by_token)
        self.mode = self.engine.mode
        # Processes that load a pickled metric compute in the same precision.
        options = (pooling, similarity, self.mode, on_long, frequencies, device, long, prior, engine)
        self._arguments = (model, *options)
        self.head = self.engine.head  # shape of the meaning head; None without one
        # The calibration was measured with the pooling and similarity of the model folder.
        is_calibrated = (self.pooling, self.similarity) == (info.pooling, info.similarity)
        self.calibration = info.calibration if is_calibrated else None
        self.meaning = info.meaning
        self.prior = prior
        if not 0 < prior < 1:
            raise InputError(f"prior {prior:g}: expected a share between 0 and 1")
        if prior != EVEN and not self.head:
            raise InputError("prior: the model folder has no meaning head, or tokens are matched one by one")

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str], **options: Any) -> SimLLM:
        """Load the metric from a model folder, with the other arguments of `SimLLM` as options."""
        return cls(folder, **options)

    @overload
    def score(self, candidates: Sequence[Example], *, against: str | None = None) -> Scores: ...

    @overload
    def score(self, candidates: Sequence[str], references: Sequence[str]) -> Scores: ...

    def score(
        self,
        candidates: Sequence[Any],
        references: Sequence[str] | None = None,
        *,
        against: str | None = None,
    ) -> Scores:
        """Score each candidate against the reference at the same index, or against the code it describes.

        The score of a pair does not depend on the other pairs, and stays the same if candidate and reference
        are swapped (up to rounding errors of 1e-5, or 0.01 in fast mode). There are exceptions:

        - Several sentences: a candidate that is longer than its reference loses, but not the reverse.
        - `precision` and `recall`: swapping candidate and reference turns one into the other.
        - `precision`, `recall` and `f1` without `frequencies`: tokens are weighted by their frequency in all
          references of this call, so the scores depend on all references.

        Texts are cleaned before scoring; for example, comment marks are removed. If nothing is left of a
        text, its pair scores 1 if the original texts are equal up to white space, otherwise 0.

        Args:
            candidates: n texts. Or n `Example` objects, each with a candidate and its reference or source.
            references: n texts; None if `candidates` are `Example` objects.
            against: `reference`, `code` (the sources of the examples) or `both`. By default `reference`, or
                `code` if no example has a reference.

        Raises:
            TypeError: An argument is not a list of texts or of examples.
            InputError: The numbers of candidates and references differ, or an example lacks the reference or
                source that it is scored against.
        """
        if references is None:
            against = choose_against(candidates, against)
            if against != "reference":
                return self._score_with_code(candidates, against)
            candidates, references = candidates_and_references(candidates)
        elif against not in (None, "reference"):
            raise InputError(f"against {against!r}: expected a list of examples with sources")
        candidates, references = text_list("candidates", candidates), text_list("references", references)
        if len(candidates) != len(references):
            raise InputError(f"{len(candidates)} candidates but {len(references)} references")
        frequencies = self.frequencies
        if self.by_token and frequencies is None:
            frequencies = self.count_frequencies(references)
        pairs = zip(candidates, references, strict=True)
        # The metric's own signature does not know the frequencies that were counted in these references.
        no_scores = replace(self.no_scores, signature=self._signature(frequencies))
        # Larger chunks than those of a stream: more equal texts are found, and batches need less padding. But
        # a GPU would wait for the tokens of all pairs, if they were one chunk.
        parts = self._scored(pairs, frequencies, 10_000)
        scores = concatenate((part for _, part in parts), no_scores)
        scores = replace(scores, warnings=self.warnings_about(scores))
        for message in scores.warnings:
            warnings.warn(message, stacklevel=2)
        return scores

    def _score_with_code(self, examples: Sequence[Example], against: str) -> Scores:
        """Score n candidates against the code in their examples, or against both code and reference."""
        self._check_cosine(against)
        other = self.score(*candidates_and_references(examples)) if against == "both" else None
        fit = self.code_reader.score(code_pairs(examples))
        for message in fit.warnings:
            warnings.warn(message, stacklevel=3)
        return self._with_fit(fit, other, against)

    def _check_cosine(self, against: str) -> None:
        """Refuse other scores than the cosines with which the scores against code were fitted."""
        if (self.pooling, self.similarity) != ("mean", "cosine"):
            raise InputError(f"against {against}: expected mean pooling and the similarity cosine")

    def _with_fit(self, fit: FitScores, other: Scores | None, against: str) -> Scores:
        """Make the scores against code, or combine them with `other`, the scores against references."""
        if other is None:
            return replace(
                self.no_scores,
                values=fit.values,
                empty=fit.empty,
                truncated=fit.truncated,
                signature=self.signature_against(against),
                calibration=None,
                same=None,
                graded=None,
                warnings=fit.warnings,
                fits=fit.fits,
            )
        return replace(
            other,
            values=self.code_reader.combine(other.values, fit),
            by_reference=other.values,
            # Neither sum nor maximum is exact: a candidate is counted on both sides, other texts on one.
            empty=max(other.empty, fit.empty),
            truncated=max(other.truncated, fit.truncated),
            signature=self.signature_against(against),
            calibration=None,
            warnings=(*other.warnings, *fit.warnings),
            fits=fit.fits,
        )

    def score_groups(self, groups: Sequence[Sequence[Example]], against: str = "reference") -> list[Scores]:
        """Score several lists of examples as one batch, such as the requests that wait in a server.

        This is faster than a call of `score` for each list if the lists are short. The scores are those of
        `score`, up to rounding errors, and to the last digit if there is only one list. Warnings are not
        issued; each result has those about its own list.

        Args:
            groups: Lists of examples, at least one in each.
            against: `reference`, `code` or `both`, as in `score`.

        Returns:
            The scores of each list.

        Raises:
            InputError: An example lacks the reference or source that it is scored against, a text is too
                long and `on_long` is `error`, or tokens are matched without `frequencies`.
        """
        if against not in AGAINST:
            raise InputError(f"against {against!r}: expected one of {', '.join(AGAINST)}")
        if against != "reference":
            self._check_cosine(against)
        if self.by_token and self.frequencies is None:
            raise InputError(f"similarity {self.similarity}: several lists need a table of frequencies")
        others: list[Scores | None] = [None] * len(groups)
        if against != "code":
            pairs = [list(zip(*candidates_and_references(group), strict=True)) for group in groups]
            found = score_groups(pairs, self._reader(), self._scorer(self.frequencies), self.no_scores)
            scored = [replace(scores, warnings=self.warnings_about(scores)) for scores in found]
            if against == "reference":
                return scored
            others = [*scored]
        fits = self.code_reader.score_groups([code_pairs(group) for group in groups])
        return [self._with_fit(fit, other, against) for fit, other in zip(fits, others, strict=True)]

    def stream(self, pairs: Iterable[Pair], first: int = 1) -> Iterator[tuple[list[Pair], Scores]]:
        """Score pairs from an iterator, in constant memory.

        This method does not warn about long texts and texts without words; call `warnings_about` at the end.

        Args:
            pairs: Tuples that begin with a candidate and its reference. More items may follow, such as an id.
            first: The number that error messages give to the first pair.

        Yields:
            Lists of up to 1,024 pairs in input order, each list with the scores of its pairs.

        Raises:
            InputError: The similarity is `precision`, `recall` or `f1`, and the metric has no `frequencies`.
        """
        if self.by_token and self.frequencies is None:
            raise InputError(f"similarity {self.similarity}: a stream needs a table of frequencies")
        # Not a generator, so that the error above is raised at the call.
        return self._scored(pairs, self.frequencies, CHUNK, first)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Compute the embeddings of n texts.

        Returns:
            (n, D) float32 embeddings; D is the hidden size of the encoder.

        Raises:
            TypeError: `texts` is not a list of texts.
            InputError: A text is too long, and the metric was made with `on_long="error"`.
        """
        texts = text_list("texts", texts)
        if not texts:
            return np.empty((0, self.model.config.hidden_size), np.float32)
        tokenized = self.tokenize(texts)
        long = about_truncated(len(texts), len(tokenized.long), self.longest, self.on_long)
        for message in [*long, *about_unreadable(len(texts), tokenized.unreadable)]:
            warnings.warn(message, stacklevel=2)
        return embedding.embed(self.engine, tokenized, self.pooling)

    def compute(self, *, predictions: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
        """Score n pairs, with the argument names of the Hugging Face `evaluate` library.

        Returns:
            A dictionary with `mean_score` (float), `scores` (n floats), and `signature`.
        """
        scores = self.score(predictions, references)
        return {"mean_score": scores.mean, "scores": scores.values.tolist(), "signature": scores.signature}

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Clean n texts (remove comment marks, convert to lower case), and turn them into token ids.

        Raises:
            InputError: A text is too long and `on_long` is `error`.
        """
        return embedding.tokenize(self.model.tokenizer, texts, self.longest, self.on_long)

    def tokenize_pairs(self, texts: Sequence[str]) -> Tokenized:
        """Tokenize n candidates and then n references, those with several sentences clause by clause."""
        return self._reader()(texts)

    def divides(self, candidate: str, reference: str) -> bool:
        """Return whether `score` compares these texts clause by clause: one of them has several sentences."""
        return self.long == "sentences" and bool(sentences.divide_pairs([candidate, reference]))

    def compare_sentences(
        self, candidate: str, reference: str
    ) -> tuple[DividedText, DividedText, Comparison] | None:
        """Compare two texts clause by clause; `explain_clauses` shows the result in words.

        Returns:
            The clauses of the candidate, those of the reference, and their comparison; None if `score`
            compares the texts as a whole.
        """
        texts = self.tokenize_pairs([candidate, reference]) if self.divides(candidate, reference) else None
        if texts is None or texts.empty.any():
            return None
        return texts.divided[0], texts.divided[1], self._scorer(None)(texts).comparisons[0]

    def count_frequencies(self, references: Iterable[str]) -> Frequencies:
        """Count, for each token, the references that contain it, for the argument `frequencies`."""
        return Frequencies.count(map(self.tokenize, chunks(references, 10_000)), self.model.tokenizer)

    @property
    def signature(self) -> str:
        """Text that names everything that can change a score: `key:value` pairs joined by `|`."""
        return self._signature(self.frequencies)

    def signature_against(self, against: str) -> str:
        """Build the signature of scores against `code` or `both`."""
        return f"{self.signature}|against:{against}|reader:{self.code_reader.signature}"

    def variant_signature(self, pooling: str, similarity: str) -> str:
        """Build the signature that this metric would have with another pooling and similarity."""
        return self._signature(self.frequencies, pooling, similarity)

    def _signature(
        self, frequencies: Frequencies | None, pooling: str | None = None, similarity: str | None = None
    ) -> str:
        """Build the signature; `frequencies` are None if `score` counts them in the references."""
        similarity = similarity or self.similarity
        # Similarities that match tokens use neither pooling nor meaning head; the others use no frequencies.
        by_token = similarity in token_matching.TOKEN_SIMILARITIES
        parts = {
            "model": self.model.hash,
            "tokenizer": self.model.tokenizer.hash,
            "pooling": "none" if by_token else pooling or self.pooling,
            "similarity": similarity,
            **self.engine.signature,
            "max_length": self.longest,
        }
        if self.head and not by_token:
            parts["head"] = self.model.head_hash
            if self.prior != EVEN:
                parts["prior"] = f"{self.prior:g}"
        if by_token:
            parts["frequencies"] = frequencies.hash if frequencies else "references"
        # "truncate" and "error" give equal scores wherever they give scores.
        long = ["sentences"] if self.long == "sentences" and not by_token else []
        if long := [*long, *(["window"] if self.on_long == "window" else [])]:
            parts["long"] = "-".join(long)
        parts["version"] = simllm.__version__
        return "|".join(f"{key}:{value}" for key, value in parts.items())

    def warnings_about(self, scores: Scores, scale: str = "raw") -> tuple[str, ...]:
        """Return warnings about texts that are too long for the model, that cleaning left empty, or that do
        not suit the scale on which the scores are shown.
        """
        pairs = len(scores.values)
        return (
            *about_truncated(2 * pairs, scores.truncated, self.longest, self.on_long),
            *about_empty_pairs(pairs, scores.empty, scores.unreadable),
            *about_percentiles(scores, scale),
        )

    def _scored(
        self, pairs: Iterable[Pair], frequencies: Frequencies | None, size: int, first: int = 1
    ) -> Iterator[tuple[list[Pair], Scores]]:
        """Yield chunks of `size` pairs with their scores; only token matching needs `frequencies`."""
        return score_in_chunks(pairs, self._reader(), self._scorer(frequencies), size, self.no_scores, first)

    def _reader(self) -> Callable[[Sequence[str]], Tokenized]:
        """Return the function that tokenizes n candidates and then n references."""
        if self.long == "whole":
            return self.tokenize
        return partial(embedding.tokenize_pairs, self.model.tokenizer, self.longest, self.on_long)

    def _scorer(self, frequencies: Frequencies | None) -> PairScorer:
        """Make the scorer of tokenized pairs; only token matching needs `frequencies`."""
        if self._similarity and self.head:
            assert self.meaning
            return MeaningScorer(
                self.engine,
                self.pooling,
                self._similarity,
                # The head knows the cosine of the embeddings with the pooling of the model folder.
                self.model.info.pooling,
                self.meaning,
                self.prior,
            )
        if self._similarity:
            return EmbeddingScorer(self.engine, self.pooling, self._similarity)
        assert frequencies is not None
        return TokenScorer(self.engine, frequencies.weights(self.model.tokenizer), self.similarity)

    @cached_property
    def no_scores(self) -> Scores:
        """An empty `Scores` object, with this metric's signature and calibration."""
        same = np.empty(0) if self.head else None
        graded = np.empty(0) if self.head and self.head.graded else None
        return Scores(
            np.empty(0), 0, 0, 0, 0, self.signature, self.calibration, same, graded, prior=self.prior
        )

    @cached_property
    def code_reader(self) -> CodeReader:
        """Scorer of pairs of code and summary; a model that reads code belongs to the default model only."""
        folder = code_model.packaged()
        code = code_model.load(folder, self.model) if folder else None
        divides = self.long == "sentences"
        return CodeReader(self.model, self.engine, self.model.info.pooling, self.on_long, code, divides)

    def __repr__(self) -> str:
        return f"SimLLM({self.signature})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Weights are loaded again in the other process, instead of being sent to it.
        return _unpickle, self._arguments


def _unpickle(model: Any, *options: Any) -> SimLLM:
    """Load the model folder of a pickled metric again; `options` are the other arguments of `SimLLM`."""
    names = ("pooling", "similarity", "mode", "on_long", "frequencies", "device", "long", "prior", "engine")
    return SimLLM(model, **dict(zip(names, options, strict=True)))
