"""The teachers: loading BERT and MPNet folders or any model of sentence-transformers, and their embeddings.

The embeddings of all texts are stored in shards in the run folder.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from tokenizers import Tokenizer as Backend
from torch import Tensor

from simllm.array_types import Floats32
from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.output_folder import OutputFolder
from simllm.io.reading import build, read_json, shown
from simllm.model.config import ModelConfig
from simllm.model.network import Encoder, with_weights
from simllm.model.saved_model import (
    StoredWeight,
    check_shapes,
    read_headers,
    read_weights,
    transformers_name,
    weight_files,
)
from simllm.model.tokenizer import read_backend
from simllm.model.torch_engine import TorchEngine, fastest_mode
from simllm.scoring.embedding import Tokenized, embed
from train.runtime.distributed import World
from train.runtime.log import format_time, print_progress
from train.tokens.shards import digest

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

KINDS = ("bert", "mpnet")  # model types that simllm's encoder can run
_SHAPE = "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size".split()
_OPTIONAL = ("relative_attention_num_buckets", "hidden_act", "layer_norm_eps")

# Parts of BERT's parameter names -> of MPNet's.
_BERT_NAMES = {
    ".attention.self.query.": ".attention.attn.q.",
    ".attention.self.key.": ".attention.attn.k.",
    ".attention.self.value.": ".attention.attn.v.",
    ".attention.output.dense.": ".attention.attn.o.",
    ".attention.output.LayerNorm.": ".attention.LayerNorm.",
}
_POSITIONS, _TYPES = "embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight"
_BIAS = "encoder.relative_attention_bias.weight"


def load_encoder(folder: Path) -> Encoder:
    """Load the weights of a BERT or MPNet folder, in the format of transformers, into simllm's encoder."""
    file = folder / "config.json"
    facts = read_json(file)
    kind = facts.get("model_type")
    if kind not in KINDS:
        raise InputError(f"{file}: expected model_type bert or mpnet, not {kind!r}")
    wrong = [name for name in (*_SHAPE, "max_position_embeddings") if type(facts.get(name)) is not int]
    if wrong:
        raise InputError(f"{file}: expected a number under {wrong[0]}")
    if facts.get("position_embedding_type", "absolute") != "absolute":
        raise InputError(f"{file}: only absolute positions are known")
    shape = {name: facts[name] for name in (*_SHAPE, *_OPTIONAL) if name in facts}
    # BERT's position vectors start at row 0 of their table, MPNet's at row 2: two rows are inserted.
    positions = facts["max_position_embeddings"] + (2 if kind == "bert" else 0)
    config = build(
        ModelConfig, {"layer_norm_eps": 1e-12, "max_position_embeddings": positions} | shape, str(file)
    )
    stored = {
        name.removeprefix(f"{kind}."): weight for name, weight in read_headers(weight_files(folder)).items()
    }
    if kind == "mpnet":
        # The prefix "" fits all names: weights that simllm lacks, such as a pooler, are left out.
        weights = read_weights(stored, config.weight_shapes, str(folder), transformers_name, ignored=("",))
    else:
        weights = _read_bert(config, stored, folder)
    return with_weights(weights, Encoder, config)


def _read_bert(config: ModelConfig, stored: Mapping[str, StoredWeight], folder: Path) -> dict[str, Floats32]:
    """Read BERT weights as those of an encoder that computes the same hidden states."""
    names = {transformers_name(name): name for name in config.weight_shapes}
    shapes = {name: config.weight_shapes[own] for name, own in names.items()}
    bias = shapes.pop(_BIAS)
    rows, width = shapes[_POSITIONS]
    shapes[_POSITIONS] = (rows - 2, width)
    # BERT adds a token type vector to each token. Texts here have only type 0, so that its vector can be
    # added to the position vectors.
    kinds = stored[_TYPES].shape[:1] if _TYPES in stored else ()
    shapes[_TYPES] = (max((1, *kinds)), width)
    stored = {_mpnet_name(name): weight for name, weight in stored.items()}
    check_shapes(stored, shapes, str(folder))
    weights = {names[name]: stored[name].read() for name in shapes if name != _TYPES}
    table = weights[names[_POSITIONS]] + stored[_TYPES].read()[0]
    weights[names[_POSITIONS]] = np.concatenate([np.zeros((2, width), np.float32), table])
    # BERT has no relative position bias; 0 has no effect.
    weights[names[_BIAS]] = np.zeros(bias, np.float32)
    return weights


def _mpnet_name(name: str) -> str:
    for theirs, ours in _BERT_NAMES.items():
        name = name.replace(theirs, ours)
    return name


_LONGEST = 128  # tokens of a text that a teacher reads

Embed = Callable[[Sequence[str]], np.ndarray]  # n texts -> (n, D) float32 of length 1


def load(folder: Path, device: torch.device) -> Embed:
    """Load a model folder in the format of sentence-transformers or transformers."""
    if _has_mean_pooling(folder) and read_json(folder / "config.json").get("model_type") in KINDS:
        # simllm's encoder is several times faster on a CPU than sentence-transformers.
        encoder, tokenizer = load_encoder(folder), load_tokenizer(folder)
        engine = TorchEngine(encoder.eval().to(device), fastest_mode(device))
        if tokenizer.get_vocab_size() > encoder.config.vocab_size:
            raise InputError(f"{folder}: the tokenizer has more tokens than config.json says")
        tokenizer.enable_truncation(min(_LONGEST, encoder.config.max_length))

        def embed_fast(texts: Sequence[str]) -> np.ndarray:
            ids = [[tuple(encoding.ids)] for encoding in tokenizer.encode_batch(list(texts))]
            return _scale_to_unit_length(embed(engine, Tokenized(ids), "mean"))

        return embed_fast

    model = load_sentence_transformer(folder, device)

    def embed_any(texts: Sequence[str]) -> np.ndarray:
        return _scale_to_unit_length(
            np.asarray(model.encode(list(texts), show_progress_bar=False), np.float32)
        )

    return embed_any


def load_sentence_transformer(folder: Path, device: torch.device) -> SentenceTransformer:
    """Load a model folder with sentence-transformers, without running code that the folder brings along."""
    # sentence-transformers imports what this file names: only its own modules are let through.
    for kind in _module_types(folder):
        if not re.fullmatch(r"sentence_transformers(\.\w+)+", kind, re.ASCII):
            raise InputError(f"{folder}: {shown(kind)} is not a module of sentence-transformers")
    try:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(
            str(folder),
            device=str(device),
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )
    # The library raises errors of many kinds.
    except Exception as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{folder}: cannot be loaded as a teacher ({reason})") from None


def _scale_to_unit_length(embeddings: np.ndarray) -> np.ndarray:
    """Scale each of the (n, D) embeddings to length 1."""
    return embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True).clip(min=1e-12)


def _has_mean_pooling(folder: Path) -> bool:
    """Return whether a teacher's embedding is the plain mean of the last hidden states, without further
    layers.
    """
    file = folder / "1_Pooling" / "config.json"
    kinds = [kind.rpartition(".")[2] for kind in _module_types(folder)]
    if not set(kinds) <= {"Transformer", "Pooling", "Normalize"}:
        return False
    # Without this file, sentence-transformers pools by the mean, too.
    if not file.is_file():
        return True
    facts = read_json(file)
    flags = {name for name, value in facts.items() if name.startswith("pooling_mode_") and value}
    return facts.get("pooling_mode") == "mean" or flags == {"pooling_mode_mean_tokens"}


def _module_types(folder: Path) -> list[str]:
    """Return the types in `modules.json`, such as "sentence_transformers.models.Pooling"."""
    modules = folder / "modules.json"
    try:
        parts = json.loads(modules.read_bytes()) if modules.is_file() else []
        return [str(part["type"]) for part in parts]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InputError(f"{modules}: expected a list of modules with their types") from None


def load_tokenizer(folder: Path) -> Backend:
    """Load a teacher's tokenizer, without padding and truncation."""
    return read_backend(folder / "tokenizer.json")


SHARD = 8192  # texts in a shard
_FILE, _CHECKSUM = "embeddings.npy", "sha256"  # in the folder of a shard


def embed_all(teacher: Path, texts: Sequence[str], folder: Path, world: World) -> list[np.ndarray]:
    """Return a teacher's embeddings of all texts: for each shard, a memory-mapped (n, D) float16 array.

    The processes divide the missing shards among themselves. Existing shards in `folder` must be from the
    same texts and teacher.
    """
    starts = range(0, len(texts), SHARD)
    missing = [start for start in starts if not _is_whole(_shard_folder(folder, start), world.is_first)]
    if missing:
        # No process writes a shard before all processes know which shards are missing.
        embed_texts = world.first_then_others(lambda: load(teacher, world.device))
        mine = missing[world.rank :: world.size]
        began = time.monotonic()
        for number, start in enumerate(mine):
            rest = (time.monotonic() - began) / max(number, 1) * (len(mine) - number)
            left = f", {format_time(rest)} left" if number else ""
            print_progress(f"  {teacher.name}: shard {number + 1} of {len(mine)}{left}")
            _write(_shard_folder(folder, start), embed_texts(texts[start : start + SHARD]))
        # Wait for the others, whose shards are read next.
        world.sum_values(0.0)
    return [np.load(_shard_folder(folder, start) / _FILE, mmap_mode="r") for start in starts]


def _shard_folder(folder: Path, start: int) -> Path:
    """Return the folder of the shard whose first text has index `start`, a multiple of `SHARD`."""
    return folder / f"{start // SHARD:05}"


def _write(shard: Path, embeddings: np.ndarray) -> None:
    """Write or replace a shard with (n, D) embeddings."""
    with OutputFolder(shard, "embeddings").replacing(keep_edits=False) as partial:
        # float16 halves the disk space.
        np.save(partial / _FILE, embeddings.astype(np.float16))
        output_file.write(partial / _CHECKSUM, digest(partial / _FILE))


def _is_whole(shard: Path, warn: bool) -> bool:
    """Return whether a shard exists and matches its checksum; warn of a damaged one if `warn`."""
    if not shard.is_dir():
        return False
    try:
        whole = digest(shard / _FILE).encode() == (shard / _CHECKSUM).read_bytes()
    except FileNotFoundError:
        whole = False
    except OSError as error:
        raise InputError(f"{shard}: cannot be read ({error.strerror})") from None
    if warn and not whole:
        print_progress(f"warning: {shard}: damaged; its embeddings are computed again")
    return whole


def identity(folder: Path) -> str:
    """Return a teacher's folder name with the start of a SHA-256 over its files.

    A changed teacher gets another name, so that its stored embeddings are not reused.
    """
    files = [*weight_files(folder), folder / "tokenizer.json", folder / "config.json"]
    try:
        hashed = digest(*files)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot be read ({error.strerror})") from None
    return f"{re.sub('[^A-Za-z0-9._-]', '-', folder.name)}-{hashed[:12]}"


def gather_embeddings(shards: Sequence[np.ndarray], numbers: np.ndarray) -> Tensor:
    """Collect the (n, D) float32 embeddings of the texts `numbers` from the arrays of `embed_all`."""
    rows = np.empty((len(numbers), shards[0].shape[1]), np.float32)
    owner = numbers // SHARD
    for shard in np.unique(owner):
        own = owner == shard
        rows[own] = shards[shard][numbers[own] % SHARD]
    return torch.from_numpy(rows)
