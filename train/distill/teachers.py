"""Functions that load the teachers (sentence encoders) and compute their embeddings of all texts.

The embeddings are computed once and stored in shards (files with the embeddings of 8192 texts each), with
checksums. A resumed run computes only the missing shards.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer as Backend
from torch import Tensor

from simllm.errors import InputError
from simllm.io import files, folder_replacement
from simllm.io.strict_loading import read_json
from simllm.model import pooling
from simllm.model.encoder import Encoder
from simllm.model.inference import make_engine
from simllm.model.network_shape import ModelConfig
from simllm.model.read_weights import read_weights, weight_files
from simllm.model.saved_model import transformers_name
from simllm.scoring.embed_texts import embed
from simllm.scoring.token_windows import Tokenized
from train.runtime.distributed import World
from train.runtime.log_file import print_progress
from train.tokens.shards import digest

SHARD = 8192  # texts in a shard
_FILE, _CHECKSUM = "embeddings.npy", "sha256"  # in the folder of a shard
_LONGEST = 128  # tokens of a text that a teacher reads
_KINDS = ("bert", "mpnet")
_SHAPE = "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size".split()
_OPTIONAL = ("relative_attention_num_buckets", "hidden_act", "layer_norm_eps")

Embed = Callable[[Sequence[str]], np.ndarray]  # n texts -> (n, D) float32 of length 1


def load(folder: Path, device: torch.device) -> Embed:
    """Load a teacher model as a function that embeds texts.

    BERT and MPNet models with mean pooling run on simllm's encoder, which is several times faster on a
    CPU. The library sentence-transformers runs all other models.

    Args:
        folder: A model folder in the format of sentence-transformers or transformers.
        device: The GPU or CPU that runs the teacher.

    Returns:
        A function that computes (n, D) float32 embeddings, with length 1, from n texts.

    Raises:
        InputError: The folder has no loadable model.
    """
    if _has_mean_pooling(folder) and read_json(folder / "config.json").get("model_type") in _KINDS:
        encoder, tokenizer = load_encoder(folder), load_tokenizer(folder)
        engine = make_engine(encoder.eval().to(device), "fast")
        tokenizer.enable_truncation(min(_LONGEST, encoder.config.max_length))

        def embed_fast(texts: Sequence[str]) -> np.ndarray:
            ids = [[tuple(encoding.ids)] for encoding in tokenizer.encode_batch(list(texts))]
            return _scale_to_unit_length(embed(engine, Tokenized(ids), pooling.mean))

        return embed_fast

    try:
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(folder), device=str(device), local_files_only=True)
    except Exception as error:  # the library raises errors of many kinds
        reason = " ".join(str(error).split())
        raise InputError(f"{folder}: cannot be loaded as a teacher ({reason})") from None

    def embed_any(texts: Sequence[str]) -> np.ndarray:
        return _scale_to_unit_length(
            np.asarray(model.encode(list(texts), show_progress_bar=False), np.float32)
        )

    return embed_any


def _scale_to_unit_length(embeddings: np.ndarray) -> np.ndarray:
    """Scale each of n embeddings to length 1; `embeddings` is (n, D)."""
    return embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True).clip(min=1e-12)


def _has_mean_pooling(folder: Path) -> bool:
    """Return whether a teacher's embedding of a text is the mean of the last hidden states of all tokens.

    The result is False if the teacher has further layers after the pooling, such as a dense layer. If the
    folder does not say how the teacher pools, the result is True.

    Args:
        folder: The model folder, in the format of sentence-transformers or transformers.
    """
    modules, file = folder / "modules.json", folder / "1_Pooling" / "config.json"
    try:
        parts = json.loads(modules.read_bytes()) if modules.is_file() else []
        kinds = [str(part["type"]).rpartition(".")[2] for part in parts]
    except (ValueError, TypeError, KeyError):
        raise InputError(f"{modules}: expected a list of modules with their types") from None
    if not set(kinds) <= {"Transformer", "Pooling", "Normalize"}:
        return False
    if not file.is_file():
        return True
    facts = read_json(file)
    flags = {name for name, value in facts.items() if name.startswith("pooling_mode_") and value}
    return facts.get("pooling_mode") == "mean" or flags == {"pooling_mode_mean_tokens"}


def load_tokenizer(folder: Path) -> Backend:
    """Load the tokenizer from a teacher's folder, and turn its padding and truncation off."""
    file = folder / "tokenizer.json"
    try:
        tokenizer = Backend.from_buffer(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    except Exception as error:  # the backend raises bare Exceptions
        raise InputError(f"{file}: not a tokenizer ({error})") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


# Parts of BERT's parameter names -> of MPNet's.
_BERT_NAMES = {
    ".attention.self.query.": ".attention.attn.q.",
    ".attention.self.key.": ".attention.attn.k.",
    ".attention.self.value.": ".attention.attn.v.",
    ".attention.output.dense.": ".attention.attn.o.",
    ".attention.output.LayerNorm.": ".attention.LayerNorm.",
}


def load_encoder(folder: Path) -> Encoder:
    """Load the weights from a BERT or MPNet folder into simllm's encoder, which is an MPNet.

    BERT differs from MPNet in three ways. It has no relative position bias, so the bias is set to 0. Its
    position vectors start at row 0 of their table instead of row 2, so two rows are inserted. It adds a token
    type vector to all tokens, so this vector is added to the position vectors.

    Args:
        folder: A model folder in the format of transformers.

    Raises:
        InputError: The folder has another kind of model, or a weight is missing.
    """
    file = folder / "config.json"
    facts = read_json(file)
    kind = facts.get("model_type")
    if kind not in _KINDS:
        raise InputError(f"{file}: expected model_type bert or mpnet, not {kind!r}")
    wrong = [name for name in (*_SHAPE, "max_position_embeddings") if not isinstance(facts.get(name), int)]
    if wrong:
        raise InputError(f"{file}: expected a number under {wrong[0]}")
    if facts.get("position_embedding_type", "absolute") != "absolute":
        raise InputError(f"{file}: only absolute positions are known")
    stored = {name.removeprefix(f"{kind}."): tensor for name, tensor in read_weights(folder).items()}
    shape = {name: facts[name] for name in (*_SHAPE, *_OPTIONAL) if name in facts}
    positions = facts["max_position_embeddings"] + (2 if kind == "bert" else 0)
    try:
        config = ModelConfig(**{"layer_norm_eps": 1e-12} | shape, max_position_embeddings=positions)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    encoder = Encoder(config)
    try:
        if kind == "bert":
            stored = _as_mpnet(stored, config)
        encoder.load_state_dict(
            {name: stored[transformers_name(name)].float() for name in encoder.state_dict()}
        )
    except KeyError as error:
        raise InputError(f"{folder}: no weight {error}") from None
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{folder}: not the weights of its config.json ({reason})") from None
    return encoder


def _as_mpnet(stored: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """Convert BERT weights to the weights of an MPNet that computes the same hidden states.

    Args:
        stored: The weights by their BERT names.
        config: The shape of the MPNet.

    Returns:
        The weights by their MPNet names.
    """
    result = {_mpnet_name(name): tensor for name, tensor in stored.items()}
    table = stored["embeddings.position_embeddings.weight"].float()
    table = table + stored["embeddings.token_type_embeddings.weight"][0].float()
    result["embeddings.position_embeddings.weight"] = torch.cat([torch.zeros(2, table.shape[1]), table])
    buckets = (config.relative_attention_num_buckets, config.num_attention_heads)
    result["encoder.relative_attention_bias.weight"] = torch.zeros(buckets)
    return result


def _mpnet_name(name: str) -> str:
    """Translate the name of a parameter from BERT to MPNet."""
    for theirs, ours in _BERT_NAMES.items():
        name = name.replace(theirs, ours)
    return name


def embed_all(teacher: Path, texts: Sequence[str], folder: Path, world: World) -> list[np.ndarray]:
    """Return a teacher's embeddings of all texts, in shards of `SHARD` (8192) texts each.

    Missing shards are computed and stored. Each process computes some of the missing shards.

    Args:
        teacher: The teacher's folder.
        texts: The texts.
        folder: The folder of the stored shards. Existing shards must be from these texts and this teacher.
        world: The processes of the run.

    Returns:
        For each shard, a memory-mapped float16 array. Each row is the embedding of one text, of width D.

    Raises:
        InputError: The teacher cannot be loaded, or a shard cannot be read or written.
    """
    starts = range(0, len(texts), SHARD)
    missing = [start for start in starts if not _is_whole(_shard_folder(folder, start), world.is_first)]
    if missing:
        # No process writes a shard before all processes know which shards are missing.
        embed_texts = world.first_then_others(lambda: load(teacher, world.device))
        mine = missing[world.rank :: world.size]
        for number, start in enumerate(mine, 1):
            print_progress(f"  {teacher.name}: shard {number} of {len(mine)}")
            _write(_shard_folder(folder, start), embed_texts(texts[start : start + SHARD]))
        world.sum_values(0.0)  # wait for the others
    return [np.load(_shard_folder(folder, start) / _FILE, mmap_mode="r") for start in starts]


def _shard_folder(folder: Path, start: int) -> Path:
    """Return the folder of one shard (a file with the embeddings of `SHARD` texts).

    Args:
        folder: The folder of all shards, which contains the returned folder.
        start: Index of the shard's first text, a multiple of `SHARD`.
    """
    return folder / f"{start // SHARD:05}"


def _write(shard: Path, embeddings: np.ndarray) -> None:
    """Write the embeddings of one shard as float16, with their checksum, into the folder `shard`."""
    with folder_replacement.replacing(shard, "embeddings", keep_edits=False) as partial:
        np.save(partial / _FILE, embeddings.astype(np.float16))
        files.write(partial / _CHECKSUM, digest(partial / _FILE))


def _is_whole(shard: Path, warn: bool) -> bool:
    """Return whether a shard of embeddings exists and matches its checksum.

    Args:
        shard: The folder of the shard.
        warn: Whether to print a warning if the shard is damaged.

    Raises:
        InputError: A file cannot be read.
    """
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
    """Return a name that identifies a teacher: its folder name and the start of a SHA-256 over its files."""
    hashed = hashlib.sha256()
    for file in [*weight_files(folder), folder / "tokenizer.json", folder / "config.json"]:
        try:
            with file.open("rb") as data:
                hashed.update(hashlib.file_digest(data, "sha256").digest())
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    return f"{re.sub('[^A-Za-z0-9._-]', '-', folder.name)}-{hashed.hexdigest()[:12]}"


def gather_embeddings(shards: Sequence[np.ndarray], numbers: np.ndarray) -> Tensor:
    """Collect a teacher's embeddings of some texts.

    Args:
        shards: The arrays from `embed_all`, which have the teacher's embeddings of all texts.
        numbers: (n,) indices of the wanted texts, among all texts.

    Returns:
        (n, D) float32 embeddings.
    """
    return torch.from_numpy(
        np.stack([shards[number // SHARD][number % SHARD] for number in numbers]).astype(np.float32)
    )
