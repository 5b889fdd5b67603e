"""The embeddings that teachers give to the training texts, computed once and stored in shards.

A shard is a folder with the embeddings of up to 8192 texts and their checksum. A resumed run computes only
the missing shards.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.output_folder import OutputFolder
from simllm.model.read_weights import weight_files
from train.distill.load_teachers import load
from train.runtime.distributed import World
from train.runtime.training_log_and_tensorboard import print_progress
from train.tokens.shards import digest

# Texts in a shard.
SHARD = 8192
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
        for number, start in enumerate(mine, 1):
            print_progress(f"  {teacher.name}: shard {number} of {len(mine)}")
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
    hashed = hashlib.sha256()
    for file in [*weight_files(folder), folder / "tokenizer.json", folder / "config.json"]:
        try:
            with file.open("rb") as data:
                hashed.update(hashlib.file_digest(data, "sha256").digest())
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    return f"{re.sub('[^A-Za-z0-9._-]', '-', folder.name)}-{hashed.hexdigest()[:12]}"


def gather_embeddings(shards: Sequence[np.ndarray], numbers: np.ndarray) -> Tensor:
    """Collect the (n, D) float32 embeddings of the texts `numbers` from the arrays of `embed_all`."""
    return torch.from_numpy(
        np.stack([shards[number // SHARD][number % SHARD] for number in numbers]).astype(np.float32)
    )
