"""Continue the pretraining of a RoBERTa, BERT or MPNet on comments, by masked language modelling.

    python -m train.pretrain.masked configs/masked.yaml model=folder/roberta-base out=runs/roberta

The start is a folder of transformers. So is the result, runs/roberta/model, with the same tokenizer.
BERTScore and sentence-transformers load it: BERTScore_Pre and SentenceBERT_Pre of the SIMLLM paper can thus
be repeated.
To resume a run that was stopped or killed, rerun the same command.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from simllm.errors import InputError
from simllm.io import output_file, reading
from simllm.io.output_folder import OutputFolder
from simllm.io.reading import read_json
from simllm.model.saved_model import read_headers, weight_files
from simllm.scoring.embedding import batch_slices
from train.corpus import build
from train.corpus.config import CorpusConfig
from train.pretrain.batches import PretrainingBatches
from train.pretrain.perplexity_plot import compute_perplexity
from train.runtime import loop, training_run
from train.runtime.batching import Prefetcher, combined_seed
from train.runtime.checkpoint import Progress
from train.runtime.config import MODEL, TrainingConfig
from train.runtime.distributed import World
from train.runtime.gradients import LossPart, autocast
from train.runtime.log import open_log, print_progress
from train.runtime.provenance import git_revision, training_provenance
from train.runtime.signals import StopRequest
from train.runtime.training_run import run_training
from train.tokens.shards import Shards, digest

CONTENT = "a model of transformers"  # of the folder, for its marker
# Types of models, and the names of the output layers of their masked language models.
_OUTPUT_LAYERS = {"roberta": "lm_head", "xlm-roberta": "lm_head", "mpnet": "lm_head", "bert": "cls"}
_IGNORED = -100  # label of a token that is not predicted
_TEXTS_AT_ONCE = 10_000  # for the tokenizer
# Settings of sentence-transformers that a start model may have; without them, it takes the mean.
_SENTENCE_SETTINGS = ("modules.json", "sentence_bert_config.json", "1_Pooling/config.json")


@dataclass(frozen=True, kw_only=True)
class MaskedConfig(TrainingConfig):
    """Settings for the continued pretraining of a model of transformers."""

    model: str  # the folder to start from
    corpus: CorpusConfig
    predict_probability: float  # share of a text's tokens that are predicted
    max_length: int  # tokens of a text, special tokens included; longer texts are cut
    batch_tokens: int  # approximate tokens of text in a batch
    accumulation: int  # batches per update, over all processes
    test_texts: int  # number of held-out texts for the perplexity

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.predict_probability < 1:
            raise InputError("predict_probability must be below 1")
        if self.batch_tokens < self.max_length:
            raise InputError(f"batch_tokens must hold the longest input, {self.max_length} tokens")
        if self.compile:
            raise InputError("compile: not for models of transformers")


def load(folder: Path) -> tuple[Any, Any]:
    """Load the masked language model and the tokenizer of a folder of transformers; no code of it is run."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected a model of transformers")
    weights = weight_files(folder)  # other weights than safetensors are pickles
    kind = read_json(folder / "config.json").get("model_type")
    if kind not in _OUTPUT_LAYERS:
        raise InputError(f"{folder}: its model_type is {kind!r}; expected one of {', '.join(_OUTPUT_LAYERS)}")
    read_headers(weights)
    from transformers import AutoModelForMaskedLM, AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()  # the missing weights are reported below
    options = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        model, report = AutoModelForMaskedLM.from_pretrained(
            folder, output_loading_info=True, use_safetensors=True, dtype=torch.float32, **options
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise InputError(f"{folder}: transformers cannot load it ({str(error).splitlines()[0]})") from None
    if tokenizer.mask_token_id is None:
        raise InputError(f"{folder}: its tokenizer has no mask token")
    if report["missing_keys"]:
        print_progress(f"  {folder.name} has no output layers for language modelling; they start at random")
    return model, tokenizer


def tokenize(file: Path, tokenizer: Any, max_length: int) -> Shards:
    """Tokenize a file of texts, one per line, with special tokens."""
    lines = (text for _, text in reading.read_lines(file))
    parts: list[np.ndarray] = []
    lengths: list[int] = []
    while texts := list(islice(lines, _TEXTS_AT_ONCE)):
        ids = tokenizer(texts, truncation=True, max_length=max_length)["input_ids"]
        parts.append(np.concatenate(ids).astype(np.int32))
        lengths += map(len, ids)
    return Shards([np.concatenate(parts)] if parts else [], np.array(lengths, np.int64))


@dataclass(frozen=True)
class MaskedBatch:
    """B texts, padded to L tokens: (B, L) ids, mask, and labels, which only predicted tokens have."""

    ids: Tensor
    mask: Tensor
    labels: Tensor


class MaskedTask:
    """The task of the training loop: model, masked batches, loss and perplexity."""

    def __init__(
        self, config: MaskedConfig, model: Any, tokenizer: Any, train: Shards, test: Shards, world: World
    ) -> None:
        self.config, self.tokenizer, self.world = config, tokenizer, world
        self.model: nn.Module = model.to(world.device)
        self.output: nn.Module = getattr(model, _OUTPUT_LAYERS[model.config.model_type])
        self.base: nn.Module = model.base_model
        if config.gradient_checkpointing:
            model.gradient_checkpointing_enable()
        settings = (len(tokenizer), config.predict_probability, config.batch_tokens * config.accumulation)
        self.batches, self.test_batches = (
            PretrainingBatches(part, *settings, config.seed, True) for part in (train, test)
        )
        self._updates = Prefetcher(self._make)

    @property
    def flops_per_token(self) -> float:
        """Estimated floating-point operations per trained token, without embeddings."""
        embeddings = sum(p.numel() for p in self.model.get_input_embeddings().parameters())  # type: ignore[operator]
        return 6.0 * (sum(p.numel() for p in self.base.parameters()) - embeddings)

    def losses(self, update: int) -> Sequence[LossPart]:
        """Return the parts of the loss of one update, the mean over its predicted tokens, in nats."""
        batches, predicted = self._updates[update]
        return [partial(self._loss_part, batch, predicted) for batch in batches]

    def _loss_part(self, batch: MaskedBatch, predicted: int) -> tuple[Tensor, int]:
        return self._loss(batch) / predicted, int(batch.mask.sum())

    def _loss(self, batch: MaskedBatch) -> Tensor:
        """Compute the sum of -log p over the predicted tokens of a batch."""
        ids, mask, labels = map(self.world.to_device, (batch.ids, batch.mask, batch.labels))
        with autocast(self.world.device, self.config.precision):
            states = self.base(input_ids=ids, attention_mask=mask).last_hidden_state
            # The output layers are computed for the predicted tokens only: the vocabulary is large.
            logits = self.output(states[labels != _IGNORED])
        return F.cross_entropy(logits.float(), labels[labels != _IGNORED], reduction="sum")

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Compute the perplexity on the held-out texts, with the same predicted tokens each time."""
        loss, count = 0.0, 0
        parts = self.test_batches.evaluation_texts(self.config.test_texts, self.config.batch_tokens)
        for number, part in list(enumerate(parts))[self.world.rank :: self.world.size]:
            for batch in self._mask(self.test_batches, part, (self.config.seed, number)):
                loss += float(self._loss(batch))
                count += int((batch.labels != _IGNORED).sum())
        loss, predicted = self.world.sum_values(loss, count)
        perplexity = compute_perplexity(loss / predicted)
        return perplexity, {"test_perplexity": perplexity}

    def format_loss(self, loss: float) -> str:
        """Format the mean loss per predicted token and the perplexity for the progress report."""
        return f"loss {loss:.3f}, perplexity {compute_perplexity(loss):,.1f}"

    def describe_texts(self, update: int) -> str:
        """Describe the texts in an update by their line numbers in the corpus."""
        epochs, texts = self.batches.texts_of_update(update, 1)[0]
        first = ", ".join(str(text + 1) for text in texts[:5])
        return f"epoch {epochs[0]}, {len(texts)} texts (line of {build.TRAIN} {first}, …)"

    def _make(self, update: int) -> tuple[list[MaskedBatch], int]:
        """Make this process's batches, and count the predicted tokens in the batches of all processes."""
        size = self.world.size
        parts = self.batches.texts_of_update(update, -(-self.config.accumulation // size) * size)
        own = list(enumerate(parts))[self.world.rank :: size]
        batches = [
            batch
            for number, (_, texts) in own
            for batch in self._mask(self.batches, texts, (self.config.seed, update, number, 1))
        ]
        return batches, self.batches.count_predicted(parts)

    def _mask(
        self, batches: PretrainingBatches, texts: np.ndarray, seed: tuple[int, ...]
    ) -> Iterator[MaskedBatch]:
        """Hide tokens of texts as in BERT: 80% become the mask token, 10% any token, 10% stay."""
        random = np.random.default_rng(combined_seed(*seed))
        order = texts[np.argsort(batches.shards.lengths[texts], kind="stable")]
        lengths = batches.shards.lengths[order]
        # Texts of similar length share a batch, so that little is padded.
        for rows in batch_slices([range(length) for length in lengths], self.config.batch_tokens):
            chosen, longest = order[rows], int(lengths[rows].max())
            ids = np.full((len(chosen), longest), self.tokenizer.pad_token_id, np.int64)
            mask, labels = np.zeros_like(ids), np.full_like(ids, _IGNORED)
            for row, text in enumerate(chosen):
                first, length = batches.first_token[text], batches.shards.lengths[text]
                ids[row, :length] = batches.shards.read_tokens(np.arange(first, first + length))
                mask[row, :length] = 1
                # The first and the last token mark the ends of the text.
                places = 1 + random.choice(length - 2, batches.predicted[text], replace=False)
                labels[row, places] = ids[row, places]
                draw = random.random(len(places))
                other = random.integers(len(self.tokenizer), size=len(places))
                hidden = np.where(draw < 0.9, self.tokenizer.mask_token_id, ids[row, places])
                ids[row, places] = np.where(draw < 0.1, other, hidden)
            yield MaskedBatch(*map(torch.from_numpy, (ids, mask, labels)))


def train(config: MaskedConfig, world: World, stop: StopRequest) -> Path:
    """Train, or resume the run, and return the folder of the model with the lowest held-out perplexity."""
    out, start, revision = Path(config.out), Path(config.model), git_revision()
    log = world.first_then_others(lambda: open_log(config, world))
    corpus = world.first_then_others(lambda: build.build(config.corpus, out / "corpus"))
    model, tokenizer = world.in_all_processes(lambda: load(start))
    limit = min(config.max_length, tokenizer.model_max_length)
    texts = [tokenize(out / "corpus" / name, tokenizer, limit) for name in (build.TRAIN, build.TEST)]
    task = world.in_all_processes(lambda: MaskedTask(config, model, tokenizer, texts[0], texts[1], world))
    if world.is_first:
        print_progress("training")

    def save_model(folder: Path, progress: Progress, perplexity: float) -> None:
        facts = {
            "objective": "masked language modelling, continued",
            "corpus_sha256": corpus["sha256"],
            **training_provenance(config, progress, world, revision),
            "test_perplexity": round(perplexity, 4),
        }
        with OutputFolder(folder, CONTENT).replacing(keep_edits=False) as partial_folder:
            model.save_pretrained(partial_folder)
            tokenizer.save_pretrained(partial_folder)
            for name in _SENTENCE_SETTINGS:
                if (start / name).is_file():
                    (partial_folder / name).parent.mkdir(exist_ok=True)
                    shutil.copyfile(start / name, partial_folder / name)
            output_file.write(partial_folder / "training.json", json.dumps(facts, indent=1) + "\n")

    inputs = [str(corpus["sha256"]), digest(*_files(start))]
    loop.train(config, task, world, stop, training_run.identity(config, *inputs), log, save_model)
    return out / MODEL


def _files(folder: Path) -> list[Path]:
    """List the files of a folder of transformers that decide weights and tokens."""
    kinds = (".json", ".txt", ".model", ".safetensors")
    return sorted(file for file in folder.iterdir() if file.suffix in kinds)


if __name__ == "__main__":
    sys.exit(run_training(MaskedConfig, train, "train.pretrain.masked", __doc__))
