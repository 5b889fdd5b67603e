"""Teachers: sentence encoders whose embeddings the student learns.

The embeddings of all texts are computed once and kept in shards with checksums, so that a stopped
run goes on with the shards that are missing.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer as Backend
from torch import Tensor

from simllm.errors import InputError
from simllm.io import folders
from simllm.io.strict import read_json
from simllm.model import pooling, weights
from simllm.model.checkpoint import transformers_name
from simllm.model.config import ModelConfig
from simllm.model.encoder import Encoder
from simllm.model.inference import make_engine
from simllm.scoring.encode import Tokenized, embed
from train.runtime.distributed import World
from train.tokens.shards import digest

SHARD = 8192  # texts in a shard
_LONGEST = 128  # tokens of a text that a teacher reads
_SHAPE = "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size".split()

Embed = Callable[[Sequence[str]], np.ndarray]  # n texts -> (n, D) float32 of length 1


def load(folder: Path, device: torch.device) -> Embed:
    """Load a teacher.

    Args:
        folder: A folder of sentence-transformers or transformers. BERT and MPNet with mean pooling run
            on our own encoder, which is several times faster on a CPU; sentence-transformers runs all
            others.
        device: Where the teacher runs.

    Returns:
        The function that embeds texts.

    Raises:
        InputError: The folder holds no model that can be loaded.
    """
    if _has_mean_pooling(folder) and read_json(folder / "config.json").get("model_type") in ("bert", "mpnet"):
        engine = make_engine(load_encoder(folder).eval().to(device), "fast")
        tokenizer = load_tokenizer(folder)
        tokenizer.enable_truncation(_LONGEST)

        def embed_fast(texts: Sequence[str]) -> np.ndarray:
            ids = [[tuple(encoding.ids)] for encoding in tokenizer.encode_batch(list(texts))]
            return _unit(embed(engine, Tokenized(ids), pooling.mean))

        return embed_fast

    try:
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(folder), device=str(device), local_files_only=True)
    except (ImportError, OSError, ValueError) as error:
        raise InputError(f"{folder}: cannot be loaded as a teacher ({error})") from None

    def embed_any(texts: Sequence[str]) -> np.ndarray:
        return _unit(np.asarray(model.encode(list(texts), show_progress_bar=False), np.float32))

    return embed_any


def _unit(embeddings: np.ndarray) -> np.ndarray:
    return embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True).clip(min=1e-12)


def _has_mean_pooling(folder: Path) -> bool:
    """Whether the folder says that its embeddings are means of all tokens, or says nothing."""
    file = folder / "1_Pooling" / "config.json"
    return not file.is_file() or read_json(file).get("pooling_mode_mean_tokens") is True


def load_tokenizer(folder: Path) -> Backend:
    """Load a teacher's `tokenizer.json` without padding and truncation."""
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


# Parts of BERT's parameter names, and of MPNet's.
_BERT_NAMES = {
    ".attention.self.query.": ".attention.attn.q.",
    ".attention.self.key.": ".attention.attn.k.",
    ".attention.self.value.": ".attention.attn.v.",
    ".attention.output.dense.": ".attention.attn.o.",
    ".attention.output.LayerNorm.": ".attention.LayerNorm.",
}


def load_encoder(folder: Path) -> Encoder:
    """Load the weights of a BERT or MPNet folder into our encoder.

    BERT is MPNet without the relative bias, with positions from row 0, and with a vector for the kind of
    text, which is added to the positions here.

    Raises:
        InputError: The folder holds another kind of model, or a weight is missing.
    """
    facts = read_json(folder / "config.json")
    kind = facts.get("model_type")
    if kind not in ("bert", "mpnet"):
        raise InputError(f"{folder}: expected model_type bert or mpnet, not {kind!r}")
    stored = {name.removeprefix(f"{kind}."): tensor for name, tensor in weights.read_weights(folder).items()}
    shape = {name: facts[name] for name in _SHAPE}
    positions = int(facts["max_position_embeddings"]) + (2 if kind == "bert" else 0)
    config = ModelConfig(
        **shape, max_position_embeddings=positions, layer_norm_eps=facts.get("layer_norm_eps", 1e-12)
    )
    if kind == "bert":
        stored = {_mpnet_name(name): tensor for name, tensor in stored.items()}
        table = stored["embeddings.position_embeddings.weight"]
        table = table + stored["embeddings.token_type_embeddings.weight"][0]
        stored["embeddings.position_embeddings.weight"] = torch.cat([torch.zeros(2, table.shape[1]), table])
        buckets = (config.relative_attention_num_buckets, config.num_attention_heads)
        stored["encoder.relative_attention_bias.weight"] = torch.zeros(buckets)
    encoder = Encoder(config)
    try:
        encoder.load_state_dict(
            {name: stored[transformers_name(name)].float() for name in encoder.state_dict()}
        )
    except (KeyError, RuntimeError) as error:
        raise InputError(f"{folder}: not the weights of its config.json ({error})") from None
    return encoder


def _mpnet_name(name: str) -> str:
    for theirs, ours in _BERT_NAMES.items():
        name = name.replace(theirs, ours)
    return name


def embed_all(teacher: Path, texts: Sequence[str], folder: Path, world: World) -> list[np.ndarray]:
    """Return a teacher's embeddings of all texts, computed once and kept in `folder`.

    Args:
        teacher: The teacher's folder.
        texts: n texts. `folder` must belong to these texts and this teacher.
        folder: Where the shards are kept, as float16.
        world: The processes; each embeds its share of the missing shards.

    Returns:
        The shards, (up to `SHARD`, D) float16 each, mapped from their files.
    """
    starts = range(0, len(texts), SHARD)
    missing = [start for start in starts if not _is_whole(_file(folder, start))]
    mine = missing[world.rank :: world.size]
    embed_texts = load(teacher, world.device) if mine else None
    for number, start in enumerate(mine):
        assert embed_texts
        print(f"  {teacher.name}: shard {number + 1} of {len(mine)}", file=sys.stderr)
        with folders.replacing(_file(folder, start).parent) as partial:
            file = partial / _file(folder, start).name
            np.save(file, embed_texts(texts[start : start + SHARD]).astype(np.float16))
            (partial / "sha256").write_text(digest(file), encoding="ascii")
    world.sum_values(0.0)  # wait for the others
    return [np.load(_file(folder, start), mmap_mode="r") for start in starts]


def _file(folder: Path, start: int) -> Path:
    return folder / f"{start // SHARD:05}" / "embeddings.npy"


def _is_whole(file: Path) -> bool:
    try:
        return digest(file) == (file.parent / "sha256").read_text(encoding="ascii")
    except FileNotFoundError:
        return False


def identity(folder: Path) -> str:
    """Return the name of a teacher with the first digits of the SHA-256 of its weights and tokenizer."""
    hashed = hashlib.sha256()
    for file in [*weights.weight_files(folder), folder / "tokenizer.json", folder / "config.json"]:
        try:
            with file.open("rb") as data:
                hashed.update(hashlib.file_digest(data, "sha256").digest())
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    return f"{re.sub('[^A-Za-z0-9._-]', '-', folder.name)}-{hashed.hexdigest()[:12]}"


def rows(shards: Sequence[np.ndarray], numbers: np.ndarray) -> Tensor:
    """Return the embeddings of some texts, (n, D) float32, by their numbers."""
    return torch.from_numpy(
        np.stack([shards[number // SHARD][number % SHARD] for number in numbers]).astype(np.float32)
    )
