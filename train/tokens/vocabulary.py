"""The BPE vocabulary: learning with SentencePiece, conversion to `tokenizer.json`, initial token embeddings.

The embeddings come from counts of neighbouring tokens (see `simllm.model.ppmi_vectors`).
"""

from __future__ import annotations

import io
import os
import signal
import string
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy import sparse
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, processors

from simllm.errors import InputError
from simllm.execution.watchdog import postponed
from simllm.io import output_file
from simllm.io.output_folder import OutputFolder
from simllm.model import ppmi_vectors
from simllm.model.tokenizer import SPECIAL_TOKENS, UNK_ID, Tokenizer
from simllm.text_cleaning import LONGEST, normalizer
from train.runtime.signals import SIGNALS, ignore_signals
from train.tokens.shards import Shards, digest

# All characters of cleaned texts. They are in every vocabulary, so that no character is unknown.
_ALPHABET = "".join(c for c in map(chr, range(0x21, 0x7F)) if c not in string.ascii_uppercase)


def load_or_learn(folder: Path, texts: Path, size: int) -> Tokenizer:
    """Load the tokenizer in a folder; if there is none, learn `size` tokens from a file of cleaned texts."""
    file = folder / "tokenizer.json"
    if not file.is_file():
        with OutputFolder(folder, "a vocabulary").replacing(keep_edits=False) as partial:
            model = partial / "sentencepiece.model"
            model.write_bytes(_learn_in_subprocess(texts, size))
            output_file.write(partial / file.name, convert(model).to_str(pretty=True))
    return Tokenizer.load(file)


def learn(texts: Iterable[str], size: int, file: Path) -> None:
    """Learn a BPE vocabulary from cleaned texts, and write it as a SentencePiece model."""
    file.write_bytes(_learn_model(texts, size))


def _learn_model(texts: Iterable[str], size: int) -> bytes:
    """Learn a BPE vocabulary of `size` tokens; return it as the bytes of a SentencePiece model."""
    # Not at the top: only learning and converting need it.
    import sentencepiece

    model = io.BytesIO()
    seen: set[str] = set()  # characters
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_with_all_characters(texts, seen),
            max_sentence_length=4 * LONGEST,  # bytes; longer texts would be skipped in silence
            model_writer=model,
            model_type="bpe",
            vocab_size=size,
            character_coverage=1.0,
            required_chars=_ALPHABET,
            normalization_rule_name="identity",  # the texts are clean
            remove_extra_whitespaces=False,
            bos_id=0,
            pad_id=1,
            eos_id=2,
            unk_id=UNK_ID,
            control_symbols=["<mask>"],
            num_threads=os.cpu_count() or 1,
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1] if seen else "there are no texts"
        raise InputError(f"vocabulary of {size} tokens cannot be learned: {reason}") from None
    return model.getvalue()


def _with_all_characters(texts: Iterable[str], seen: set[str]) -> Iterator[str]:
    """Yield the texts, and one more with the missing characters of the alphabet; `seen` collects
    characters.
    """
    for text in texts:
        # The tokenizer reads only so many characters of a text; others do not count.
        seen.update(text[:LONGEST])
        yield text[:LONGEST]
    # SentencePiece before version 0.2.3 aborts the process if a required character is in no text.
    if seen and (missing := set(_ALPHABET) - seen):
        yield " ".join(sorted(missing))


def _learn_in_subprocess(texts: Path, size: int) -> bytes:
    """Learn a vocabulary as `_learn_model` does, in a child process that a signal can stop at once."""
    # In this process, SentencePiece would delay a signal such as Ctrl+C until the learning is finished.
    command = [sys.executable, "-m", "train.tokens.vocabulary", str(texts.absolute()), str(size)]
    child = None
    try:
        # A signal before the assignment would leave the process running.
        with postponed(SIGNALS):
            child = subprocess.Popen(
                command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        model, errors = child.communicate()
    except BaseException:
        if child is not None:
            child.kill()
            child.wait()
        raise
    if child.returncode < 0:
        reason = f"its process was killed by signal {-child.returncode}"
        if child.returncode == -signal.SIGKILL:
            reason += ", perhaps for lack of memory"
        if lines := errors.decode("utf-8", "replace").strip().splitlines():
            reason += f" ({lines[-1]})"
        raise InputError(f"vocabulary of {size} tokens cannot be learned: {reason}")
    if child.returncode:
        lines = errors.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        raise InputError(lines[-1].removeprefix("error: "))
    return model


def _main() -> int:
    """Be the child process of `_learn_in_subprocess`: write the model to standard output."""
    # The parent process handles signals and ends this process.
    ignore_signals()
    _, file, size = sys.argv
    try:
        with Path(file).open(encoding="ascii") as lines:
            model = _learn_model((line.rstrip("\n") for line in lines), int(size))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    sys.stdout.buffer.write(model)
    return 0


def convert(file: Path) -> Backend:
    """Convert a SentencePiece model to a tokenizer that splits texts in the same way."""
    import sentencepiece

    source = sentencepiece.SentencePieceProcessor(model_proto=file.read_bytes())
    return bpe([source.id_to_piece(i) for i in range(source.get_piece_size())])


def bpe(pieces: Sequence[str]) -> Backend:
    """Build a tokenizer that splits texts like a SentencePiece BPE model with the same tokens.

    `pieces` are the tokens in the order of their ids, the five special tokens first.
    """
    # BPE merges neighbouring tokens again and again. SentencePiece always merges the two neighbours that form
    # the token with the lowest id. The library `tokenizers` instead merges the pair that stands first in a
    # list. Sorting all pairs by the id of the token that they form has the same effect.
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    merges = []
    for piece, rank in vocabulary.items():
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in vocabulary and right in vocabulary:
                merges.append((rank, vocabulary[left], vocabulary[right], left, right))
    tokenizer = Backend(
        models.BPE(vocabulary, [(left, right) for *_, left, right in sorted(merges)], unk_token="<unk>")
    )
    tokenizer.normalizer = normalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer


if __name__ == "__main__":
    sys.exit(_main())


def load_or_compute_vectors(folder: Path, shards: Shards, vocab_size: int, size: int) -> np.ndarray:
    """Load the (V, D) float32 vectors in a folder; if they are missing or damaged, compute and save them."""
    file, checksum = folder / "vectors.npy", folder / "sha256"
    try:
        if digest(file) == checksum.read_bytes().decode("ascii", "replace"):
            return np.load(file)
        print(f"warning: {file}: damaged (checksum differs); computed again", file=sys.stderr)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise InputError(f"{error.filename or file}: cannot be read ({error.strerror})") from None
    vectors = compute_vectors(shards, vocab_size, size)
    with OutputFolder(folder, "token vectors").replacing(keep_edits=False) as partial:
        np.save(partial / file.name, vectors)
        (partial / checksum.name).write_text(digest(partial / file.name), encoding="ascii")
    return vectors


def compute_vectors(shards: Shards, vocab_size: int, size: int) -> np.ndarray:
    """Factorise the matrix of positive pointwise mutual information of neighbouring tokens.

    Returns (V, D) float32 vectors with a standard deviation of 1 over all values; zeros for tokens that are
    not in the texts.
    """
    vectors = ppmi_vectors.ppmi_vectors(_count_neighbours(shards, vocab_size), size)
    return (vectors / vectors.std()).astype(np.float32)


def _count_neighbours(shards: Shards, vocab_size: int) -> sparse.csr_matrix:
    """Count in a sparse (V, V) matrix how often two tokens are at most five tokens apart in a text."""
    counts = sparse.csr_matrix((vocab_size, vocab_size), dtype=np.float64)
    ends, first = np.cumsum(shards.lengths), 0
    for part in shards.parts:
        # Part by part, so that only one part of the corpus is in memory.
        ids = np.asarray(part, np.int32)
        text = np.searchsorted(ends, np.arange(first, first + len(ids)), side="right")
        first += len(ids)
        counts += ppmi_vectors.count_neighbours(ids, text, vocab_size)
    return counts
