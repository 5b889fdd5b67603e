"""The networks of `network.py` as ONNX graphs, and the engine of ONNX Runtime, which runs them without torch.

The order and the names are those of `network.py`, where the reasons stand.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing import parent_process
from weakref import WeakSet

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from simllm.array_types import Floats, Floats32
from simllm.errors import InputError
from simllm.io.packages import missing_package
from simllm.model.config import MAX_DISTANCE, POOLINGS, HeadConfig, ModelConfig, distance_buckets
from simllm.model.onnx_graph import Graph, Value
from simllm.model.saved_model import SavedModel
from simllm.model.tokenizer import PAD_ID

Weights = Mapping[str, Floats32]
_LOWEST = float(np.finfo(np.float32).min)  # instead of scores of hidden positions


def linear(x: Value, weights: Weights, name: str) -> Value:
    """Apply a linear layer to the last dimension."""
    return x @ np.ascontiguousarray(weights[f"{name}.weight"].T) + weights[f"{name}.bias"]


def norm(x: Value, weights: Weights, name: str, epsilon: float) -> Value:
    """Apply a layer norm to the last dimension."""
    scale, shift = weights[f"{name}.weight"], weights[f"{name}.bias"]
    return x.graph.node("LayerNormalization", x, scale, shift, axis=-1, epsilon=epsilon)


def size_of(x: Value, dimension: int) -> Value:
    """Return the size of one dimension, as a scalar."""
    return x.graph.node("Gather", x.graph.node("Shape", x), dimension)


def positions_of(x: Value) -> Value:
    """Return the (L,) positions from 0 of a value whose second dimension is L."""
    return x.graph.node("Range", 0, size_of(x, 1), 1)


def add_dimensions(x: Value, *dimensions: int) -> Value:
    """Insert dimensions of size 1, which have these numbers afterwards."""
    return x.graph.node("Unsqueeze", x, dimensions)


def relative_bias(positions: Value, mask: Value | None, weights: Weights, config: ModelConfig) -> Value:
    """Compute the bias of attention from (L,) positions and a (B, L) mask: (B or 1, H, L, L)."""
    graph, buckets = positions.graph, distance_buckets(config.relative_attention_num_buckets)
    table = weights["relative_bias.table.weight"][buckets]  # (2 * MAX_DISTANCE + 1, H), by distance
    distances = add_dimensions(positions, 0) - add_dimensions(positions, 1)
    distances = graph.node("Clip", distances, -MAX_DISTANCE, MAX_DISTANCE) + MAX_DISTANCE
    bias = graph.node("Transpose", graph.node("Gather", table, distances), perm=[2, 0, 1])
    if mask is None:
        return add_dimensions(bias, 0)
    return graph.node("Where", add_dimensions(mask, 1, 2), bias, _LOWEST)


def layer(x: Value, bias: Value, weights: Weights, name: str, config: ModelConfig) -> Value:
    """Apply a transformer layer to (B, L, D) states, with a (B or 1, H, L, L) bias of its attention."""
    graph, heads = x.graph, config.num_attention_heads
    q, k, v = (
        graph.node("Reshape", linear(x, weights, f"{name}.attention.{part}"), [0, 0, heads, -1])
        for part in ("query", "key", "value")
    )
    q = graph.node("Transpose", q, perm=[0, 2, 1, 3]) * float((config.hidden_size / heads) ** -0.5)
    k, v = (graph.node("Transpose", k, perm=[0, 2, 3, 1]), graph.node("Transpose", v, perm=[0, 2, 1, 3]))
    mixed = graph.node("Softmax", q @ k + bias, axis=-1) @ v
    mixed = graph.node("Reshape", graph.node("Transpose", mixed, perm=[0, 2, 1, 3]), [0, 0, -1])
    epsilon = config.layer_norm_eps
    attended = linear(mixed, weights, f"{name}.attention.output")
    x = norm(x + attended, weights, f"{name}.attention_norm", epsilon)
    inner = graph.node("Gelu", linear(x, weights, f"{name}.up"))
    return norm(x + linear(inner, weights, f"{name}.down"), weights, f"{name}.norm", epsilon)


def encoder(tokens: Value, mask: Value | None, weights: Weights, config: ModelConfig) -> list[Value]:
    """Encode (B, L) token ids with a (B, L) mask; return the (B, L, D) states of each layer."""
    graph, positions = tokens.graph, positions_of(tokens)
    of_tokens = graph.node("Gather", weights["embeddings.token.weight"], tokens)
    table = weights["embeddings.position.weight"][config.pad_token_id + 1 :]
    x = of_tokens + graph.node("Gather", table, positions)
    x = norm(x, weights, "embeddings.norm", config.layer_norm_eps)
    bias = relative_bias(positions, mask, weights, config)
    states = []
    for number in range(config.num_hidden_layers):
        x = layer(x, bias, weights, f"layers.{number}", config)
        states.append(x)
    return states


def project(states: list[Value], weights: Weights, head: HeadConfig) -> Value:
    """Apply the first layer of the meaning head to the states of the encoder's last layers: (B, L, W)."""
    last = states[-head.encoder_layers :]
    return linear(last[0].graph.node("Concat", *last, axis=-1), weights, "project")


def meaning_head(
    a: Value, a_mask: Value, b: Value, b_mask: Value, cosines: Value | None,
    weights: Weights, config: HeadConfig, inner: ModelConfig,
) -> Value:  # fmt: skip
    """Predict (P, 1 or 2) logits from (P, L, W) and (P, M, W) results of `project`, with their masks.

    The second logit, of a graded head, needs the (P,) cosines.
    """
    graph = a.graph
    aligned = graph.node("Transpose", linear(b, weights, "align"), perm=[0, 2, 1])
    scores = linear(a, weights, "align") @ aligned * float(config.width**-0.5)
    turned = graph.node("Transpose", scores, perm=[0, 2, 1])
    of_a = _read(a, a_mask, b, b_mask, scores, weights, inner)
    both = of_a + _read(b, b_mask, a, a_mask, turned, weights, inner)
    same = linear(graph.node("Gelu", linear(both, weights, "hidden")), weights, "logit")
    if not config.graded or cosines is None:
        return same
    graded = linear(both, weights, "graded") + add_dimensions(cosines, 1) * weights["cosine_weight"]
    return graph.node("Concat", same, graded, axis=1)


def _read(
    own: Value, mask: Value, other: Value, other_mask: Value, scores: Value,
    weights: Weights, inner: ModelConfig,
) -> Value:  # fmt: skip
    """Compute (P, 2 W) features of the text `own` by comparing its tokens with those of `other`."""
    graph = own.graph
    shares = graph.node("Where", add_dimensions(other_mask, 1), scores, _LOWEST)
    shares = graph.node("Softmax", shares, axis=-1)  # (P, L, M)
    aligned, positions = shares @ other, positions_of(own)
    columns, rows = (
        graph.node("Cast", add_dimensions(numbers, 1), to=1) for numbers in (positions_of(other), positions)
    )
    offset = graph.node("Tanh", (shares @ columns - rows) * 0.25)
    largest = graph.node("ReduceMax", shares, [-1], keepdims=1)
    features = graph.node("Concat", own, aligned, own - aligned, own * aligned, offset, largest, axis=-1)
    x = linear(features, weights, "compare")
    bias = relative_bias(positions, mask, weights, inner)
    for number in range(inner.num_hidden_layers):
        x = layer(x, bias, weights, f"layers.{number}", inner)
    kept = add_dimensions(mask, 2)
    as_numbers = graph.node("Cast", kept, to=1)
    total, count = (graph.node("ReduceSum", one, [1], keepdims=0) for one in (x * as_numbers, as_numbers))
    highest = graph.node("ReduceMax", graph.node("Where", kept, x, _LOWEST), [1], keepdims=0)
    return graph.node("Concat", total / count, highest, axis=-1)


def encoder_graph(model: SavedModel, with_head: bool) -> Graph:
    """Build the graph from (B, L) ids and mask to `states` and, with the head, to `projected`."""
    graph = Graph()
    tokens = graph.input("tokens", "int64", "batch", "length")
    mask = graph.input("mask", "bool", "batch", "length")
    states = encoder(tokens, mask, model.weights, model.config)
    graph.output("states", states[-1], "batch", "length", model.config.hidden_size)
    if with_head and model.head_weights and model.head_config:
        vectors = project(states, model.head_weights, model.head_config)
        graph.output("projected", vectors, "batch", "length", model.head_config.width)
    return graph


def head_graph(weights: Weights, config: HeadConfig, model: ModelConfig) -> Graph:
    """Build the graph of the meaning head without its first layer."""
    graph = Graph()
    a, b = (graph.input(name, "float32", "pairs", f"length_{name}", config.width) for name in ("a", "b"))
    masks = [graph.input(f"{name}_mask", "bool", "pairs", f"length_{name}") for name in ("a", "b")]
    cosines = graph.input("cosines", "float32", "pairs") if config.graded else None
    logits = meaning_head(a, masks[0], b, masks[1], cosines, weights, config, config.inner(model))
    graph.output("logits", logits, "pairs", 1 + config.graded)
    return graph


def usable_threads() -> int:
    """Return the number of threads: OMP_NUM_THREADS, 1 in a worker process, or else the usable processors."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    if parent_process():  # each worker would have a thread for each processor
        return 1
    # Only Linux knows which processors a process may use.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class OnnxEngine:
    """Networks that ONNX Runtime runs on the CPU, in float32; see `simllm.scoring.embedding.Engine`."""

    batch_tokens = 1024  # more do not fit into a CPU's caches
    device = "cpu"
    mode = "exact"

    def __init__(self, model: SavedModel, mode: str, device: str | None, with_head: bool) -> None:
        if mode != "exact":
            raise InputError(f"mode {mode!r}: expected exact, or torch: {missing_package('torch', 'torch')}")
        if device not in (None, "cpu"):
            raise InputError(
                f"device {device!r}: expected cpu, or torch: {missing_package('torch', 'torch')}"
            )
        self.signature = {"dtype": "float32", "engine": "onnxruntime"}
        self.threads = usable_threads()
        self.head = model.head_config if with_head else None
        self._model = model
        self._sessions = self._start()
        _engines.add(self)

    def _start(self) -> dict[str, onnxruntime.InferenceSession]:
        """Start the sessions, which have threads of their own."""
        graphs = {"encoder": encoder_graph(self._model, bool(self.head))}
        if self.head and self._model.head_weights:
            graphs["head"] = head_graph(self._model.head_weights, self.head, self._model.config)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.enable_mem_pattern = False  # plans memory for each new shape, and never forgets a plan
        return {
            name: onnxruntime.InferenceSession(graph.to_bytes(), options, ["CPUExecutionProvider"])
            for name, graph in graphs.items()
        }

    def beside(self, other: SavedModel) -> tuple[OnnxEngine, OnnxEngine]:
        """Return an engine of another model with a meaning head, and this engine with that head."""
        info = replace(self._model.info, meaning=other.info.meaning)
        own = replace(self._model, info=info, head_weights=other.head_weights)
        return OnnxEngine(other, "exact", None, True), OnnxEngine(own, "exact", None, True)

    def forget_sessions(self) -> None:
        """Make a forked child start sessions of its own: it has no threads of its parent."""
        # Kept alive for ever, because a session that is deleted waits for its threads.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._sessions))
        self._sessions = {}

    def _run(self, name: str, inputs: Mapping[str, NDArray[np.generic]]) -> list[Floats32]:
        if not self._sessions:
            self._sessions = self._start()
        return self._sessions[name].run(None, inputs)

    def encode(self, texts: Sequence[Sequence[int]]) -> EncodedTexts:
        """Encode the token ids of B texts."""
        lengths = [len(ids) for ids in texts]
        tokens = np.full((len(texts), max(lengths)), PAD_ID)
        for row, ids in zip(tokens, texts, strict=True):
            row[: len(ids)] = ids
        mask = np.arange(tokens.shape[1]) < np.array(lengths)[:, None]
        states = [
            [text[:length] for text, length in zip(output, lengths, strict=True)]
            for output in self._run("encoder", {"tokens": tokens, "mask": mask})
        ]
        return EncodedTexts(*states)

    def logits(
        self, first: Sequence[Sequence[Floats32]], second: Sequence[Sequence[Floats32]], cosines: Floats
    ) -> Floats:
        """Run the meaning head on the vectors of n pairs of texts, window by window: (n, 1 or 2) logits."""
        inputs: dict[str, NDArray[np.generic]] = {}
        for name, texts in (("a", first), ("b", second)):
            inputs[name], inputs[f"{name}_mask"] = _padded(texts)
        if self.head and self.head.graded:
            inputs["cosines"] = cosines.astype(np.float32)
        return self._run("head", inputs)[0].astype(np.float64)


_engines: WeakSet[OnnxEngine] = WeakSet()


def _after_fork() -> None:
    for engine in _engines:
        engine.forget_sessions()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork)


def _padded(texts: Sequence[Sequence[Floats32]]) -> tuple[Floats32, NDArray[np.bool_]]:
    """Join the (tokens, W) windows of B texts and pad them to (B, L, W); return the (B, L) mask, too."""
    lengths = np.array([sum(map(len, windows)) for windows in texts])
    padded = np.zeros((len(texts), lengths.max(), texts[0][0].shape[1]), np.float32)
    for row, windows, length in zip(padded, texts, lengths.tolist(), strict=True):
        np.concatenate(windows, out=row[:length])
    return padded, np.arange(padded.shape[1]) < lengths[:, None]


@dataclass(frozen=True)
class EncodedTexts:
    """The (tokens, D) states of B texts, and their (tokens, W) vectors for the meaning head."""

    of_texts: list[Floats32]
    vectors: list[Floats32] | None = None

    def pooled(self, pooling: str) -> Floats32:
        """Pool the states into (B, D) embeddings."""
        return np.stack([POOLINGS[pooling](states) for states in self.of_texts])

    def states(self) -> list[Floats32]:
        """Return each text's states."""
        return self.of_texts

    def projected(self) -> list[Floats32]:
        """Return each text's vectors for the meaning head."""
        assert self.vectors is not None
        return self.vectors
