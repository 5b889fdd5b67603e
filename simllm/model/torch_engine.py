"""The engine of torch: networks with the fastest operators of a precision and device."""

from __future__ import annotations

import copy
import math
import os
import platform
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain
from multiprocessing import parent_process
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from simllm.array_types import Floats, Floats32
from simllm.errors import InputError
from simllm.model.config import HeadConfig
from simllm.model.network import POOLINGS, Encoder, Layer, MeaningHead, attention, of_last_layer
from simllm.model.saved_model import SavedModel
from simllm.model.tokenizer import PAD_ID


def default_device() -> str:
    """Return "cuda" if there is a CUDA GPU, otherwise "cpu"."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def usable_device(device: str) -> str:
    """Return `device` itself; raise InputError if this machine cannot compute on it."""
    try:
        # Copied back, because some devices, such as `meta`, allocate tensors that nothing can read.
        torch.zeros(1, device=device).cpu()
    except (AssertionError, NotImplementedError, RuntimeError, TypeError, ImportError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0] or type(error).__name__
        available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
        # PyTorch's own messages name its internal functions, or thirty other devices.
        if not available.get(kind := device.partition(":")[0], True):
            reason = "an Apple GPU is not here" if kind == "mps" else "a CUDA GPU is not here"
            reason += ", or this PyTorch does not support it"
        elif reason.startswith("Expected one of"):
            reason = "no name of a device"
        usable = " or ".join(["cpu", *(kind for kind, is_here in available.items() if is_here)])
        raise InputError(f"device {device!r}: cannot be used ({reason}); expected {usable}") from None
    return device


def _compute_with_one_thread() -> None:
    torch.set_num_threads(1)


# A forked child has none of its parent's threads, for which PyTorch would wait forever.
if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_compute_with_one_thread)


@cache
def _share_processors() -> None:
    """Compute with one thread in a worker of `multiprocessing`, unless OMP_NUM_THREADS is set."""
    # By default, each worker would have a thread for each processor; on a busy machine, that is many times
    # slower, because a waiting thread keeps its processor.
    if parent_process() and "OMP_NUM_THREADS" not in os.environ:
        _compute_with_one_thread()


CPU_BATCH, GPU_BATCH = 1024, 65_536  # tokens in a batch; more do not fit into a CPU's caches


def pad(ids: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Pad the token ids of B texts to the longest: (B, L) token ids, and their (B, L) mask."""
    lengths = np.array([len(text) for text in ids])
    mask = np.arange(lengths.max()) < lengths[:, None]  # not `tokens != PAD_ID`: that id may be a word
    tokens = np.full(mask.shape, PAD_ID)
    tokens[mask] = np.fromiter(chain.from_iterable(ids), np.int64, lengths.sum())
    return torch.from_numpy(tokens), torch.from_numpy(mask)


# In float32, long rows would need too much memory.
_LONG_ROW = 64  # rows with at least this many attention scores use PyTorch's softmax


def _softmax(scores: Tensor) -> Tensor:
    return scores.softmax(-1)


def matmul_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor,
    dropout_p: float = 0.0,
    softmax: Callable[[Tensor], Tensor] = _softmax,
) -> Tensor:
    """Compute PyTorch's `scaled_dot_product_attention` by two matrix products, without dropout."""
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    scores = torch.matmul(q, k.transpose(-1, -2)).mul_(1 / math.sqrt(q.shape[-1])).add_(attn_mask)
    return torch.matmul(softmax(scores), v)


def short_softmax(scores: Tensor) -> Tensor:
    """Compute the softmax over the last dimension of bfloat16 numbers, faster than PyTorch for short rows."""
    columns = scores.shape[-1]
    if columns >= _LONG_ROW:
        return scores.softmax(-1)
    # PyTorch's softmax is slow on a CPU in bfloat16, and also in float32 for rows of fewer than 16 numbers.
    padded = F.pad(scores, (0, max(0, 16 - columns)), value=torch.finfo(scores.dtype).min)
    return padded.float().softmax(-1)[..., :columns].to(scores.dtype)


# For short texts in bfloat16, this function takes half the time of PyTorch's `scaled_dot_product_attention`.
fast_attention = partial(matmul_attention, softmax=short_softmax)


def packed_layers(module: nn.Module, dtype: torch.dtype) -> dict[int, nn.Module]:
    """Make float32 or bfloat16 replacements of a network's linear layers, by the `id` of the replaced layer.

    The dict is the `memo` with which `copy.deepcopy` copies the network. It is empty if the network is not on
    a CPU, or if oneDNN does not work on this machine.
    """
    if next(module.parameters()).device.type != "cpu" or not can_pack(dtype):
        return {}
    parts = list(module.modules())
    copies: dict[int, nn.Module] = {
        id(part): PackedLinear(part, dtype) for part in parts if isinstance(part, nn.Linear)
    }
    # The first linear layer of a feed-forward network also applies the activation, which saves time.
    for layer in (part for part in parts if isinstance(part, Layer)):
        copies[id(layer.up)] = PackedLinear(layer.up, dtype, "gelu")
        copies[id(layer.activation)] = nn.Identity()
    return copies


@cache
def can_pack(dtype: torch.dtype) -> bool:
    """Return whether `PackedLinear` works here; some CPUs and PyTorch versions lack its private operators."""
    values = torch.arange(16 * 32, dtype=torch.float32).reshape(16, 32) / 512
    with torch.random.fork_rng(devices=[]):  # random initial weights must not change the user's random state
        linear = nn.Linear(32, 16)
    linear.load_state_dict({"weight": values, "bias": values[:, 0].clone()})
    try:
        with torch.inference_mode():
            product = PackedLinear(linear, dtype)(values.to(dtype)).float()
            # A changed operator may also compute something else. The tolerance is for bfloat16, with its 8
            # bits.
            return torch.allclose(product, linear(values), rtol=0.02)
    except Exception:  # a missing or changed operator may raise anything
        return False


class PackedLinear(nn.Module):
    """Linear layer, (..., inputs) to (..., outputs), for inference on a CPU, with weights in oneDNN's layout.

    The activation, `none` or `gelu`, is part of the layer, which is faster than a second layer.
    """

    forward: Callable[[Tensor], Tensor]

    def __init__(self, linear: nn.Linear, dtype: torch.dtype, activation: str = "none") -> None:
        super().__init__()
        # The layout is the best one for batches of this size; other sizes work, too.
        weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach().to(dtype), CPU_BATCH)
        # Keywords, because the operator takes the weights after the input.
        self.forward = partial(
            torch.ops.mkldnn._linear_pointwise,
            W=weight, B=linear.bias.detach().to(dtype), attr=activation, scalars=[], algorithm="none",
        )  # fmt: skip


@cache
def has_fast_bfloat16(kind: str) -> bool:
    """Return whether bfloat16 is faster than float32 on a kind of device, such as "cpu"; False if unknown."""
    if kind == "cuda":
        return torch.cuda.get_device_capability() >= (8, 0)
    if kind != "cpu" or not can_pack(torch.bfloat16):
        return False
    # Not measured: on a busy machine, times say little. Elsewhere than on x86, oneDNN has bfloat16 only with
    # the instructions.
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return True
    facts = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    if facts.get("cpu_name", "").startswith("Intel"):
        # Without AMX, which virtual machines often lack, Intel's bfloat16 has two thirds of float32's speed.
        return bool(facts.get("amx_bf16"))
    # Without instructions, oneDNN emulates bfloat16, at a third of the speed of float32.
    known = getattr(torch.cpu, "_is_avx512_bf16_supported", None)  # private: other versions may lack it
    return known is None or bool(known())


def fastest_mode(device: torch.device | str) -> str:
    """Return `fast`, or `exact` where bfloat16 is slower."""
    return "fast" if has_fast_bfloat16(torch.device(device).type) else "exact"


def usable_mode(mode: str, device: torch.device | str) -> str:
    """Return the mode itself, or `exact` with a warning in place of `fast` if that would be slower."""
    if mode != "fast" or fastest_mode(device) == mode:
        return mode
    kind = torch.device(device).type
    warnings.warn(
        f"mode fast: no fast instructions for bfloat16 are known on this {kind}, so that it would be slower "
        "than mode exact; float32 is used, as in that mode",
        stacklevel=5,  # the line that made the metric
    )
    return "exact"


Module = TypeVar("Module", bound=nn.Module)

# plain: the encoder itself, not a copy, so that the weights may change in training
# exact: a copy in float32, packed for the CPU; fast: a copy in bfloat16, packed for the CPU
MODES = {"plain": torch.float32, "exact": torch.float32, "fast": torch.bfloat16}


def prepare_module(module: Module, mode: str) -> Module:
    """Return the network itself in mode `plain`, otherwise a copy in the mode's precision.

    On a CPU, the linear layers of the copy are packed for oneDNN, if it works on this machine.
    """
    if mode == "plain":
        return module
    dtype = MODES[mode]
    # Where the memo has a replacement, deepcopy takes it and does not copy the original weights first.
    return copy.deepcopy(module, packed_layers(module, dtype)).to(dtype)


class TorchEngine:
    """Networks that are ready for scoring in one of `MODES`; see `simllm.scoring.embedding.Engine`.

    In mode `plain`, the encoder may move to another device and be trained.
    """

    def __init__(self, encoder: Encoder, mode: str = "plain", head: MeaningHead | None = None) -> None:
        if mode not in MODES:
            raise InputError(f"mode {mode!r}: expected one of {', '.join(MODES)}")
        self.mode = mode
        self._process = os.getpid()
        self.encoder = prepare_module(encoder, mode)
        self.use_head(head and prepare_module(head, mode))
        self.signature = {"dtype": str(MODES[mode]).removeprefix("torch.")}

    @classmethod
    def load(cls, model: SavedModel, mode: str, device: str | None, with_head: bool) -> TorchEngine:
        """Prepare a model for scoring; the default device is a GPU if there is one."""
        device = default_device() if device is None else usable_device(device)
        head = model.head if with_head else None
        return cls(model.encoder.to(device), usable_mode(mode, device), head and head.to(device))

    def beside(self, other: SavedModel) -> tuple[TorchEngine, TorchEngine]:
        """Return an engine of another model with a meaning head, and this engine with that head."""
        assert other.head
        head = prepare_module(other.head.to(self.device), self.mode)
        engines = TorchEngine(other.encoder.to(self.device), self.mode), copy.copy(self)
        for engine in engines:
            engine.use_head(head)
        return engines

    @property
    def device(self) -> torch.device:
        """The torch device that holds the networks."""
        return next(self.encoder.parameters()).device

    @property
    def batch_tokens(self) -> int:
        """Largest number of tokens in a batch, padding included."""
        return CPU_BATCH if self.device.type == "cpu" else GPU_BATCH

    @property
    def attention(self) -> Callable[..., Tensor]:
        """The attention function that suits mode and device."""
        if self.device.type == "cuda" and not self.encoder.training:  # in training, it may have dropout
            # PyTorch's own takes that of cuDNN, which needs about half a second for each new shape.
            return matmul_attention
        return fast_attention if self.mode == "fast" and self.device.type == "cpu" else attention

    @property
    def threads(self) -> int:
        """Number of threads that compute on a CPU."""
        return torch.get_num_threads()

    def use_head(self, head: MeaningHead | None) -> None:
        """Use a meaning head on the same device, or none."""
        self.meaning_head = head
        self.head: HeadConfig | None = head.config if head else None

    def __call__(self, tokens: Tensor, mask: Tensor, last_layers: int = 1) -> Tensor:
        """Map (B, L) token ids and their (B, L) mask to (B, L, N * D) states of the N last layers."""
        if self.device.type == "cpu":
            _share_processors()  # not earlier: a module that a new worker imports may have made the engine
        elif os.getpid() != self._process:
            raise InputError(
                f"the model is on {self.device}, which a forked process cannot use; "
                'start processes with the method "spawn", or use device="cpu"'
            )
        return self.encoder(tokens, mask, self.attention, last_layers)

    @torch.inference_mode()
    def encode(self, texts: Sequence[Sequence[int]]) -> EncodedTexts:
        """Encode the token ids of B texts."""
        tokens, mask = (tensor.to(self.device) for tensor in pad(texts))
        layers = self.head.encoder_layers if self.head else 1
        return EncodedTexts(self, self(tokens, mask, layers), mask)

    @torch.inference_mode()
    def logits(self, first: Sequence[list[Rows]], second: Sequence[list[Rows]], cosines: Floats) -> Floats:
        """Run the meaning head on the vectors of n pairs of texts, window by window: (n, 1 or 2) logits."""
        assert self.meaning_head
        a, a_mask = _padded(first)
        b, b_mask = _padded(second)
        similar = torch.from_numpy(cosines).float().to(a.device)
        logits = self.meaning_head(a, a_mask, b, b_mask, self.attention, similar)
        return logits.cpu().double().numpy()  # in this order: Apple GPUs have no float64


@dataclass(frozen=True)
class EncodedTexts:
    """The (B, L, N * D) states of B texts, on the device of the engine, with their (B, L) mask."""

    engine: TorchEngine
    hidden: Tensor
    mask: Tensor

    @cached_property
    def last(self) -> Tensor:
        """The (B, L, D) states of the last layer."""
        return of_last_layer(self.hidden, self.engine.encoder.config.hidden_size)

    @torch.inference_mode()
    def pooled(self, pooling: str) -> Floats32:
        """Pool the states into (B, D) embeddings."""
        return POOLINGS[pooling](self.last, self.mask).float().cpu().numpy()

    def states(self) -> list[Floats32]:
        """Return each text's (tokens, D) states."""
        whole, lengths = self.last.float().cpu().numpy(), self.mask.sum(1).tolist()
        return [row[:length] for row, length in zip(whole, lengths, strict=True)]

    @torch.inference_mode()
    def projected(self) -> list[Rows]:
        """Compute each text's (tokens, W) vectors with the first layer of the meaning head."""
        assert self.engine.meaning_head
        whole, lengths = self.engine.meaning_head.project(self.hidden), self.mask.sum(1).tolist()
        flat, longest = whole.flatten(0, 1), whole.shape[1]
        return [Rows(flat, i * longest, length) for i, length in enumerate(lengths)]


@dataclass(frozen=True, slots=True)
class Rows:
    """The (tokens, W) vectors of a text: rows of a tensor with the vectors of many texts."""

    source: Tensor
    first: int
    length: int

    def __len__(self) -> int:
        return self.length


def _padded(texts: Sequence[list[Rows]]) -> tuple[Tensor, Tensor]:
    """Join the windows of B texts and pad them to (B, L, W); return the (B, L) mask, too."""
    # All rows of a tensor are copied at once: on a GPU, a copy for each text would take longer than the head.
    lengths = np.array([sum(map(len, windows)) for windows in texts])
    longest = int(lengths.max())
    parts: dict[int, tuple[Tensor, list[tuple[int, int, int]]]] = {}  # first row, place and length, by tensor
    for i, windows in enumerate(texts):
        place = i * longest
        for rows in windows:
            parts.setdefault(id(rows.source), (rows.source, []))[1].append((rows.first, place, rows.length))
            place += rows.length
    some = texts[0][0].source
    padded = some.new_zeros(len(texts) * longest, some.shape[1])
    for source, copies in parts.values():
        first, places, counts = np.array(copies).T
        inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        indices = np.stack([np.repeat(first, counts) + inside, np.repeat(places, counts) + inside])
        taken, put = torch.from_numpy(indices).to(some.device)
        padded.index_copy_(0, put, source.index_select(0, taken))
    mask = torch.from_numpy(np.arange(longest) < lengths[:, None]).to(some.device)
    return padded.unflatten(0, (len(texts), longest)), mask
