import gzip
import itertools
import json

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from simllm.errors import InputError
from simllm.metric import default_model
from simllm.model.tokenizer import SPECIAL_TOKENS, UNK_ID, Tokenizer
from simllm.text_cleaning import clean
from train.tokens import vocabulary


def corpus_texts(real_files):
    for file in real_files("corpus/*.jsonl.gz"):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            yield from (json.loads(line)["text"] for line in itertools.islice(lines, 20_000))


def rated_texts(real_files):
    for file in real_files("rated/*.jsonl"):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            yield from (row[name] for name in ("reference", "candidate", "candidate_clean") if name in row)


@pytest.mark.slow
def test_equals_sentencepiece_on_100_000_corpus_texts(real_files, tmp_path):
    texts = [clean(text) for text in corpus_texts(real_files)]
    assert len(texts) >= 100_000
    vocabulary.learn(iter(texts), 16_000, tmp_path / "sentencepiece.model")
    reference = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "sentencepiece.model"))
    tokenizer = Tokenizer(vocabulary.convert(tmp_path / "sentencepiece.model"))
    assert tokenizer.vocab_size == reference.get_piece_size() == 16_000
    for text, ours, theirs in zip(texts, tokenizer.encode(texts), reference.encode(texts), strict=True):
        assert ours == [0, *theirs, 2], text
        assert UNK_ID not in ours, text


@pytest.fixture(scope="module")
def reference(sentencepiece_model):
    return sentencepiece.SentencePieceProcessor(model_file=str(sentencepiece_model))


@settings(max_examples=500)
@given(st.one_of(st.text(), st.text("aabcerst .-='1", max_size=60)))
def test_equals_sentencepiece_on_any_text(reference, tokenizer, text):
    (ours,) = tokenizer.encode([text])
    assert ours == [0, *reference.encode(clean(text)), 2]
    assert UNK_ID not in ours


def test_rated_sets_have_no_unknown_tokens(real_files):
    tokenizer = Tokenizer.load(default_model() / "tokenizer.json")
    texts = list(rated_texts(real_files))
    assert len(texts) > 3000
    assert all(UNK_ID not in ids for ids in tokenizer.encode(texts))


def test_spelled_out_special_tokens_are_ordinary_text(tokenizer):
    (ids,) = tokenizer.encode([" ".join(SPECIAL_TOKENS)])
    assert ids[0] == 0
    assert ids[-1] == 2
    assert min(ids[1:-1]) >= len(SPECIAL_TOKENS)


def test_empty_text_has_only_the_two_boundary_tokens(tokenizer):
    assert tokenizer.encode(["", " ", "\u4e2d"]) == [[0, 2]] * 3


def test_too_few_texts_for_a_vocabulary_are_an_error(tmp_path):
    with pytest.raises(InputError, match="vocabulary of 5000 tokens cannot be learned"):
        vocabulary.learn(iter(["adds two numbers"]), 5000, tmp_path / "sentencepiece.model")
    assert not list(tmp_path.iterdir())


def test_damaged_tokenizer_file_is_an_error(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"tokenizer\.json: not a tokenizer"):
        Tokenizer.load(tmp_path / "tokenizer.json")
