import pytest
import sentencepiece

from simllm.errors import InputError
from simllm.text_cleaning import clean
from train.fairseq.dictionary import from_sentencepiece


def learned(tmp_path, comments, **options):
    """Train a SentencePiece model whose special ids and normalization differ from simllm's."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([clean(text) for text in comments]),
        model_prefix=str(tmp_path / "sp"),
        vocab_size=600,
        minloglevel=2,
        **options,
    )
    return tmp_path / "sp.model"


def test_imported_sentencepiece_model_splits_as_before(tmp_path, comments):
    file = learned(tmp_path, comments[:800], model_type="bpe")
    tokenizer, source = from_sentencepiece(file), sentencepiece.SentencePieceProcessor(model_file=str(file))
    assert tokenizer.vocab_size == 600 - 3 + 5
    for text in map(clean, comments[800:]):
        pieces = [source.id_to_piece(i) for i in source.encode(text)]
        assert tokenizer.backend.encode(text).tokens[1:-1] == pieces


def test_character_of_the_fairseq_dictionary_becomes_a_piece(tmp_path, comments):
    file = learned(tmp_path, [text.replace("?", "") for text in comments[:800]], model_type="bpe")
    assert "?" not in from_sentencepiece(file, []).backend.get_vocab()
    tokenizer = from_sentencepiece(file, ["?", "a", "else?"])
    assert tokenizer.vocab_size == 600 - 3 + 5 + 1
    assert tokenizer.backend.encode("a ?").tokens == [
        "<s>",
        "\N{LOWER ONE EIGHTH BLOCK}a",
        "\N{LOWER ONE EIGHTH BLOCK}",
        "?",
        "</s>",
    ]


def test_simllm_sentencepiece_model_gives_the_simllm_tokens(sentencepiece_model, tokenizer):
    assert from_sentencepiece(sentencepiece_model).backend.get_vocab() == tokenizer.backend.get_vocab()


@pytest.mark.parametrize(
    "options", [{"model_type": "unigram"}, {"model_type": "bpe", "add_dummy_prefix": False}]
)
def test_another_kind_of_sentencepiece_model_is_refused(tmp_path, comments, options):
    with pytest.raises(InputError, match="not a plain BPE model"):
        from_sentencepiece(learned(tmp_path, comments, **options))


def test_rejects_files_that_are_no_sentencepiece_model(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        from_sentencepiece(tmp_path / "no")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(InputError, match="not a SentencePiece model"):
        from_sentencepiece(tmp_path / "text")
