"""Text metrics that use a model: word vectors, SentenceBERT, BERTScore and NLI."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.io import reading
from simllm.metrics.interface import UnavailableError
from simllm.metrics.text.readable_texts import TextScorer
from simllm.model.config import cosine
from simllm.model.saved_model import TOKENIZER, default_model
from simllm.model.tokenizer import Tokenizer

_MOST_TEXTS = 1_000_000  # more texts change little, and take more than a minute


def load_word_vectors(corpus: str) -> TextScorer:
    """Load the cosine of mean word vectors, weighted by idf (inverse document frequency); from -1 to 1.

    The "words" are subword tokens, from the tokenizer of the model that comes with simllm. Their vectors are
    factors of the PPMI matrix (positive pointwise mutual information) of neighbouring tokens in a corpus.
    `corpus` is a file of texts: one text per line; or JSON lines (`.jsonl`, `.jsonl.gz`) with a field `text`
    or `summary`. Only the first million texts are read.
    """
    # Needs scipy, unlike the other metrics of this file.
    from simllm.model.ppmi_vectors import weighted_vectors

    if not Path(corpus).is_file():
        raise UnavailableError(f"{corpus}: no such file; expected one text per line, or JSON lines with text")
    tokenizer = Tokenizer.load(default_model() / TOKENIZER)

    # If all scores are in the score cache, the vectors are never computed.
    @cache
    def vectors() -> Floats:
        texts = list(islice(_texts(Path(corpus)), _MOST_TEXTS))
        return weighted_vectors(tokenizer.encode(texts), tokenizer.vocab_size)

    def score(candidates: Sequence[str], references: Sequence[str]) -> Floats:
        sides = (tokenizer.encode(texts) for texts in (candidates, references))
        # The sum has the same direction as the mean. The boundary tokens are the same in every text.
        return cosine(*(np.stack([vectors()[ids[1:-1]].sum(axis=0) for ids in side]) for side in sides))

    def can_read(text: str) -> bool:
        return bool(vectors()[tokenizer.encode([text])[0][1:-1]].any())

    data = {"corpus": Path(corpus), "tokenizer": default_model() / TOKENIZER}
    return TextScorer(score, can_read, "without tokens that the corpus distinguishes", data=data)


def _texts(corpus: Path) -> Iterator[str]:
    """Yield the texts in a corpus file, one from each line."""
    plain = ".jsonl" not in corpus.suffixes
    for number, line in reading.read_lines(corpus):
        if plain:
            yield line
            continue
        row = reading.parsed(line, where := f"{corpus}, line {number}")
        if not isinstance(text := row.get("text", row.get("summary")), str):
            raise InputError(f'{where}: expected a text under "text" or "summary"')
        yield text


_SINGLE_DIGITS = 6  # decimals of a score from float32 embeddings; further digits depend on the batch


@contextlib.contextmanager
def _loading(folder: Path) -> Iterator[None]:
    """Refuse a folder with code of its own, and turn errors of a `with` block that loads it into one line."""
    import torch

    for file in sorted(folder.rglob("*config.json")):
        # The training data of all-MiniLM-L6-v2 and others: a list, which no library reads.
        if file.name == "data_config.json":
            continue
        # transformers would ask on the terminal whether to run the code.
        if file.is_file() and "auto_map" in reading.read_json(file):
            raise UnavailableError(f"{file}: names code to run (auto_map); no code of model folders is run")
    try:
        with torch.random.fork_rng(devices=[]):  # transformers draws weights that the folder lacks
            yield
    except Exception as error:  # the libraries raise what they like for odd folders
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UnavailableError(f"{folder}: cannot be loaded ({reason})") from None


def load_sentence_bert(model: str) -> TextScorer:
    """Load SentenceBERT (Reimers and Gurevych, 2019): the cosine of embeddings of sentence-transformers.

    `model` is a folder or the name of a downloaded model; scores are from -1 to 1.
    """
    from sentence_transformers import SentenceTransformer

    try:
        folder = _downloaded(model)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UnavailableError(
            f"{model}: not a model folder, nor downloaded (hf download {model}): {reason}"
        ) from None
    with _loading(folder):
        encoder = SentenceTransformer(str(folder), local_files_only=True, trust_remote_code=False)

    def score(candidates: Sequence[str], references: Sequence[str]) -> Floats:
        texts = [*candidates, *references]
        embeddings = encoder.encode(texts, show_progress_bar=False, convert_to_numpy=True)
        values = cosine(embeddings[: len(candidates)], embeddings[len(candidates) :])
        return values.round(_SINGLE_DIGITS)

    return TextScorer(score, data={"model": folder})


def _downloaded(model: str) -> Path:
    """Find a model's folder on this machine; raise OSError or ValueError instead of downloading the model."""
    from huggingface_hub import snapshot_download

    if Path(model).is_dir():
        return Path(model)
    try:
        return Path(snapshot_download(model, local_files_only=True))
    except (OSError, ValueError):
        if "/" in model:
            raise
        # sentence-transformers adds its own organisation to a name without one, such as "all-MiniLM-L6-v2".
        return Path(snapshot_download(f"sentence-transformers/{model}", local_files_only=True))


def load_bertscore(model: str) -> TextScorer:
    """Load BERTScore (Zhang et al., 2020), from the package bert-score; F1 without rescaling.

    Each token is matched with the most similar token of the other text, by the last layer of a transformers
    model in a folder. Precision is the mean cosine of the candidate's tokens and their matches; recall is
    that of the reference's tokens.
    """
    from bert_score import BERTScorer

    config = Path(model) / "config.json"
    if not config.is_file():
        raise UnavailableError(
            f"{model}: no folder of a transformers model; download one (hf download NAME --local-dir {model})"
        )
    with _loading(Path(model)):
        # bert-score knows the best layer of published models by their names only; a folder has no such name.
        scorer = BERTScorer(model_type=model, num_layers=reading.read_json(config)["num_hidden_layers"])

    def score(candidates: Sequence[str], references: Sequence[str]) -> Floats:
        f1 = scorer.score(list(candidates), list(references))[2]
        return f1.numpy().astype(np.float64).round(_SINGLE_DIGITS)

    return TextScorer(score, data={"model": Path(model)})


def load_nli(model: str) -> TextScorer:
    """Load NLI (natural language inference): the mean probability that each text follows from the other.

    `model` is a folder with one ONNX file and its `tokenizer.json`, at any depth. The key `id2label`
    in its `config.json` tells which logit is that of "entailment"; without this file, it is the first.
    """
    import onnxruntime
    import torch
    from tokenizers import Tokenizer as FastTokenizer

    folder = Path(model)
    networks, tokenizers = (sorted(folder.rglob(name)) for name in ("*.onnx", TOKENIZER))
    if (len(networks), len(tokenizers)) != (1, 1):
        raise UnavailableError(f"{model}: expected a folder with one ONNX file and one {TOKENIZER}")

    def probability(premise: str, hypothesis: str) -> float:
        """Compute the probability that the hypothesis follows from the premise."""
        encoded = tokenizer.encode(premise, hypothesis)
        columns = {"input_ids": encoded.ids, "attention_mask": encoded.attention_mask}
        columns["token_type_ids"] = encoded.type_ids
        # One pair at a time, because the scales of dynamic 8-bit numbers depend on the whole batch.
        inputs = {name: np.array([columns[name]], np.int64) for name in names}
        logits = network.run(None, inputs)[0][0].astype(np.float64)
        odds = np.exp(logits - logits.max())
        return float(odds[label] / odds.sum())

    with _loading(folder):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()  # as OMP_NUM_THREADS says
        network = onnxruntime.InferenceSession(networks[0], options, providers=["CPUExecutionProvider"])
        tokenizer = FastTokenizer.from_file(str(tokenizers[0]))
        names = [node.name for node in network.get_inputs()]
        label = _entailment_label(folder / "config.json")
        probability("a file", "a text")  # a network of another form fails here

    def score(candidates: Sequence[str], references: Sequence[str]) -> Floats:
        pairs = zip(candidates, references, strict=True)
        both = np.array([[probability(a, b), probability(b, a)] for a, b in pairs])
        return both.mean(axis=1).round(_SINGLE_DIGITS)

    return TextScorer(score, data={"model": folder})


def _entailment_label(config: Path) -> int:
    """Return the number of the label "entailment" in a model's `config.json`; 0 without this file."""
    if not config.is_file():
        return 0
    labels = {
        str(name).lower(): int(number) for number, name in reading.read_json(config)["id2label"].items()
    }
    return labels["entailment"]
