"""The task of training a code reader: its batches, its losses and its evaluation on dev data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from simllm.errors import InputError
from simllm.model import code_model, saved_model
from simllm.model.code_model import CodeInfo, CodeModel
from simllm.model.config import HeadConfig
from simllm.model.network import get_pooling, of_last_layer
from simllm.model.saved_model import MeaningInfo
from simllm.model.torch_engine import TorchEngine, pad
from simllm.perturb.summaries import lexicon
from simllm.perturb.summaries.meaning_changes import change
from simllm.scoring.code import CodeReader, words
from simllm.scoring.embedding import batch_slices
from train.code_reader import measure
from train.runtime.batching import Prefetcher, combined_seed
from train.runtime.config import MAY_BE_ZERO, TrainingConfig
from train.runtime.distributed import World
from train.runtime.gradients import LossPart, autocast

_DEV_TRIALS = 400  # functions in an evaluation


@dataclass(frozen=True, kw_only=True)
class CodeReaderConfig(TrainingConfig):
    """All settings of the training of a code reader."""

    model: str  # the model folder whose encoder embeds the summaries
    start: str = ""  # a code reader to continue from, of any model; "" for the encoder of summaries
    pairs: str  # output of `train.code_reader.pairs`
    head: HeadConfig
    functions: int  # functions per update
    siblings: int  # functions of one source file that are drawn together
    code_tokens: int  # longer code is cut in training
    chunk_tokens: int  # tokens of code that are embedded at once, padding included
    temperature: float  # of the softmax over cosines
    alike: float  # summaries with a higher cosine are no negatives of each other
    changed: float = field(metadata=MAY_BE_ZERO)  # share of functions with a changed summary
    variants: float = field(metadata=MAY_BE_ZERO)  # share of functions whose variant is read, too
    absolute_weight: float = field(
        metadata=MAY_BE_ZERO
    )  # weight of the loss of every pair of the update alone
    variant_weight: float = field(metadata=MAY_BE_ZERO)  # weight of the distance between code and its variant
    head_weight: float  # weight of the loss of the head

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.siblings < 2:
            raise InputError(f"siblings must be 2 or more, not {self.siblings}")
        if not (0 <= self.changed <= 1 and 0 <= self.variants <= 1):
            raise InputError("changed and variants must be from 0 to 1")


class Functions:
    """The functions of one split, by source file."""

    def __init__(self, file: Path, split: str) -> None:
        files: dict[tuple[str, str], list[measure.Function]] = {}
        for function in measure.read_functions(file, split):
            files.setdefault((function.repository, function.path), []).append(function)
        self.files = list(files.values())
        # Files are drawn by their number of functions, so that all functions are equally frequent.
        self.shares = np.array([len(functions) for functions in self.files], float)
        if len(self.files) < 2:
            raise InputError(f"{file}: expected functions of two or more source files in the split {split!r}")
        self.shares /= self.shares.sum()

    def __len__(self) -> int:
        return sum(map(len, self.files))

    def draw(self, count: int, siblings: int, random: np.random.Generator) -> list[measure.Function]:
        """Draw functions, up to `siblings` of one source file one after another."""
        drawn: list[measure.Function] = []
        while len(drawn) < count:
            functions = self.files[random.choice(len(self.files), p=self.shares)]
            most = min(siblings, count - len(drawn))
            drawn += [functions[i] for i in random.permutation(len(functions))[:most]]
        return drawn


class Row(NamedTuple):
    """The token ids of one function in an update: its code, and the variant of the code or None."""

    code: list[int]
    variant: list[int] | None


@dataclass(frozen=True)
class CodeBatch:
    """B tokenized functions.

    `summaries` has their B summaries, and then C changed summaries. `changed` is (B,): the index of a
    function's changed summary in `summaries`, or -1; `siblings` has the indices of other functions of the
    same source file for each function, or without any that of the next function.
    """

    rows: list[Row]
    summaries: list[list[int]]
    changed: list[int]
    siblings: list[list[int]]


def siblings(drawn: Sequence[measure.Function], i: int) -> list[int]:
    """Return the indices of the functions of the same source file with other names; without any, the next."""
    own = drawn[i]
    found = [
        j
        for j, other in enumerate(drawn)
        if (other.repository, other.path) == (own.repository, own.path) and other.name != own.name
    ]
    return found or [(i + 1) % len(drawn)]


class CodeReaderTask:
    """The task that the training loop runs.

    There are four losses. The first compares each code with all summaries of the update (InfoNCE). The second
    learns from each pair alone whether it belongs together (Zhai et al., "Sigmoid loss for language image
    pre-training", 2023), so that scores of different functions can be compared. The third is the distance
    between the embeddings of a code and of its variant. The last is that of the head.
    """

    def __init__(self, config: CodeReaderConfig, world: World) -> None:
        self.config, self.world = config, world
        self.summaries = saved_model.load(config.model)
        self.pool = get_pooling(self.summaries.info.pooling)
        torch.manual_seed(config.seed)  # for the head's initial weights
        info = CodeInfo(self.summaries.hash, MeaningInfo(config.head))
        self.code: CodeModel = code_model.start(
            self.summaries, info, Path(config.start) if config.start else None
        )
        self.encoder, self.head = self.code.encoder, self.code.head
        # Scale and bias of the cosines in the second loss.
        self.absolute = nn.ParameterList([torch.tensor([10.0, -6.0])])
        parts = {"encoder": self.encoder, "head": self.head, "absolute": self.absolute}
        parts["summary_map"] = self.code.summary_map
        self.model: nn.Module = nn.ModuleDict(parts).to(world.device)
        frozen = self.summaries.encoder.to(world.device).requires_grad_(False)
        self.engine = TorchEngine(frozen, "fast" if config.precision == "bf16" else "exact")
        self.functions = Functions(Path(config.pairs), "train")
        self.lexicon = lexicon.load()
        self.dev = measure.make_trials(Path(config.pairs), "dev", config.seed, most=_DEV_TRIALS)
        self.calibrated = info.fits  # by the last evaluation
        self._batches = Prefetcher(self._make_batch)

    @property
    def flops_per_token(self) -> float:
        """Estimated floating-point operations per trained token."""
        return 6.0 * sum(p.numel() for p in self.encoder.layers.parameters())

    def format_loss(self, loss: float) -> str:
        """Format the loss of one update for the progress bar."""
        return f"loss {loss:.3f}"

    def describe_texts(self, update: int) -> str:
        """Describe the functions of one update for the error message of a diverged run."""
        drawn = self._draw(update)
        return f"{len(drawn)} functions ({drawn[0].path}: {drawn[0].name}, …)"

    def _draw(self, update: int) -> list[measure.Function]:
        random = np.random.default_rng(combined_seed(self.config.seed, update))
        return self.functions.draw(self.config.functions, self.config.siblings, random)

    def _make_batch(self, update: int) -> CodeBatch:
        config, drawn = self.config, self._draw(update)
        random = np.random.default_rng(combined_seed(config.seed, update, 1))
        changed, texts = [-1] * len(drawn), [function.summary for function in drawn]
        for number, function in enumerate(drawn):
            made = (
                change(function.summary, self.lexicon, random) if random.random() < config.changed else None
            )
            if made:
                changed[number] = len(texts)
                texts.append(made[1])
        tokenizer, limit = self.summaries.tokenizer, self.encoder.config.max_length
        encoded = [tokenizer.truncate(ids, limit) for ids in tokenizer.encode(texts)]
        codes = [words(function.code, function.language) for function in drawn]
        variants = [words(function.variant, function.language) for function in drawn]
        ids = [tokenizer.truncate(ids, config.code_tokens) for ids in tokenizer.encode([*codes, *variants])]
        rows = [
            Row(code, variant if text and random.random() < config.variants else None)
            for code, variant, text in zip(ids[: len(drawn)], ids[len(drawn) :], variants, strict=True)
        ]
        return CodeBatch(rows, encoded, changed, [siblings(drawn, i) for i in range(len(drawn))])

    def losses(self, update: int) -> Sequence[LossPart]:
        """Return the parts of the loss of one update that this process computes, one for each chunk."""
        batch = self._batches[update]
        states = self._read_summaries(batch.summaries)
        order = sorted(range(len(batch.rows)), key=lambda i: len(batch.rows[i].code))
        chunks: list[list[int]] = [[]]
        for i in order:
            # A variant is about as long as its code.
            width = max(map(len, filter(None, batch.rows[i])))
            if chunks[-1] and 2 * (len(chunks[-1]) + 1) * width > self.config.chunk_tokens:
                chunks.append([])
            chunks[-1].append(i)
        own = chunks[self.world.rank :: self.world.size]
        return [partial(self._loss, batch, states, chunk) for chunk in own]

    def _read_summaries(self, ids: list[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
        """Run the frozen encoder on N summaries: (N, M, layers * D) states, their mask, (N, D) embeddings."""
        width, layers = self.encoder.config.hidden_size, self.config.head.encoder_layers
        device, longest = self.world.device, max(map(len, ids))
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        states = torch.zeros(len(ids), longest, layers * width, device=device)
        embeddings = torch.zeros(len(ids), width, device=device)
        with torch.no_grad():
            for rows in batch_slices([ids[i] for i in order], self.engine.batch_tokens):
                tokens, mask = map(self.world.to_device, pad([ids[i] for i in order[rows]]))
                read = self.engine(tokens, mask, layers)
                states[order[rows], : tokens.shape[1]] = read.float()
                embeddings[order[rows]] = self.pool(of_last_layer(read, width), mask).float()
        return states, self.world.to_device(pad(ids)[1]), embeddings

    def _loss(
        self, batch: CodeBatch, summaries: tuple[Tensor, Tensor, Tensor], chosen: list[int]
    ) -> tuple[Tensor, int]:
        """Compute the summand of the loss for some functions, and the number of tokens in their code."""
        config, device, count = self.config, self.world.device, len(batch.rows)
        with_variant = [i for i in chosen if batch.rows[i].variant]
        ids = [batch.rows[i].code for i in chosen] + [batch.rows[i].variant or [] for i in with_variant]
        tokens, mask = map(self.world.to_device, pad(ids))
        with autocast(device, config.precision):
            states = self.encoder(tokens, mask, last_layers=config.head.encoder_layers)
        embeddings = self.pool(of_last_layer(states, self.encoder.config.hidden_size), mask).float()
        code = F.normalize(embeddings, dim=1)
        texts = F.normalize(summaries[2], dim=1)
        targets = torch.tensor([*chosen, *with_variant], device=device)
        cosines = code @ F.normalize(self.code.summary_map(summaries[2]), dim=1).T
        own = F.one_hot(targets, len(texts)).bool()
        # Different functions may do the same; a changed summary is always wrong for its own function.
        alike = (texts[targets] @ texts.T > config.alike) & ~own
        changed = torch.tensor([batch.changed[i] for i in targets.tolist()], device=device)
        alike[(changed >= 0).nonzero().squeeze(1), changed[changed >= 0]] = False
        logits = (cosines / config.temperature).masked_fill(alike, -torch.inf)
        loss = F.cross_entropy(logits, targets, reduction="sum")
        scale, bias = self.absolute[0]
        absolute = F.binary_cross_entropy_with_logits(scale * cosines + bias, own.float(), reduction="none")
        loss = loss + config.absolute_weight * absolute.masked_fill(alike, 0.0).sum()
        n = len(chosen)
        places = [chosen.index(i) for i in with_variant]
        loss = loss + config.variant_weight * (1 - (code[places] * code[n:]).sum(1)).sum()
        loss = loss + config.head_weight * self._head_loss(
            batch, summaries, chosen, alike, states[:n], mask[:n]
        )
        return loss / count, int(mask.sum())

    def _head_loss(
        self,
        batch: CodeBatch,
        summaries: tuple[Tensor, Tensor, Tensor],
        functions: list[int],
        alike: Tensor,
        states: Tensor,
        mask: Tensor,
    ) -> Tensor:
        """Compute the loss of the head for F functions: own, siblings' and changed summaries.

        `functions` has their indices, `alike` is (F, N); states and mask belong to their codes. Right and
        wrong summaries count alike.
        """
        rows: list[int] = []
        texts: list[int] = []
        labels: list[float] = []
        weights: list[float] = []
        for row, function in enumerate(functions):
            near = [i for i in batch.siblings[function] if not alike[row, i]]
            changed = [batch.changed[function]] if batch.changed[function] >= 0 else []
            rows += [row] * (1 + len(near) + len(changed))
            texts += [function, *near, *changed]
            labels += [1.0] + [0.0] * len(near + changed)
            weights.append(1.0)
            kinds = bool(near) + bool(changed)  # which count alike
            for wrong in (near, changed):
                weights += [1 / (kinds * len(wrong))] * len(wrong) if wrong else []
        all_states, all_masks, _ = summaries
        longest = int(all_masks[texts].sum(1).max())
        with autocast(self.world.device, self.config.precision):
            code = self.head.project(states)
            text = self.head.project(all_states[texts, :longest])
            logits = self.head(code[rows], mask[rows], text, all_masks[texts, :longest]).float()[:, 0]
        truth, weight = (torch.tensor(values, device=logits.device) for values in (labels, weights))
        return F.binary_cross_entropy_with_logits(logits, truth, weight, reduction="sum") / 2

    def reader(self) -> CodeReader:
        """Return the scorer with the present weights; it reads summaries whole."""
        state = self.code.summary_map.state_dict().items()
        code = replace(self.code, map_weights={name: weight.cpu().numpy() for name, weight in state})
        pooling = self.summaries.info.pooling
        return CodeReader(self.summaries, self.engine, pooling, code=code, divides=False)

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Return the criterion (lower is better): the negative mean of the figures on dev data."""
        scored = measure.score_trials(self.reader(), self.dev)
        figures = measure.aucs(scored)
        self.calibrated = measure.calibrate(scored, self.code.info.fits)
        return -sum(figures.values()) / len(figures), figures
