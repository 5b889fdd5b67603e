import gzip
import itertools
import json
import time

import pytest
import sentencepiece
import tokenizers
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


def regex(pattern, content="x"):
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def text(pattern, content):
    return {"type": "Replace", "pattern": {"String": pattern}, "content": content}


def sequence(*rules):
    return {"normalizer": {"type": "Sequence", "normalizers": [*rules]}}


def split(pattern):
    kind = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [kind]}}


def changed(tokenizer, folder, change):
    values = json.loads(tokenizer.backend.to_str())
    for key, value in change.items():
        values[key] = values[key] | value if key == "model" else value
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(values))
    return file


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (sequence(regex("(b|b)*c")), "may take too long"),
        (sequence(regex(r"\s+\w+z")), "may take too long"),
        (sequence(regex(r"(b+)\1d")), "may take too long"),
        (sequence(regex(r"((a{900}){900}){900}")), "may take too long"),
        (split("(?:[a-z]+)+!"), "may take too long"),
        ({"decoder": regex("(x*)*y")}, "may take too long"),
        (sequence(*[text("e", "ee")] * 30), "may make a text over 16 times longer"),
        (sequence(text("", "long " * 9)), "may make a text over 16 times longer"),
        (sequence(regex("[a-z]", "y" * 20)), "may make a text over 16 times longer"),
        (sequence({"type": "Prepend", "prepend": "p" * 10**6}), "may make a text over 16 times longer"),
        (sequence(*[{"type": "NFC"}] * 101), "over 100 rules"),
        (sequence({"type": "Precompiled", "precompiled_charsmap": "AQ=="}), "'Precompiled' is not supported"),
        (sequence({"type": "Unknown"}), "'Unknown' is not supported"),
        ({"model": {"dropout": 0.1}}, "dropout"),
        ({"model": {"unk_token": 7}}, "not a tokenizer"),
        ({"post_processor": None}, "begin with that of <s> and end with that of </s>"),
    ],
)
def test_a_harmful_tokenizer_is_refused_at_once(tokenizer, tmp_path, change, message):
    file = changed(tokenizer, tmp_path, change)
    start = time.process_time()
    with pytest.raises(InputError, match=message) as error:
        Tokenizer.load(file)
    assert time.process_time() - start < 3
    assert str(error.value).startswith(f"{file}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("ids", [[1000], [4_000_000_000], [0, 0]])
def test_ids_that_the_vocabulary_does_not_have_are_refused(tokenizer, tmp_path, ids):
    post = json.loads(tokenizer.backend.to_str())["post_processor"]
    post["special_tokens"]["<s>"]["ids"] = ids
    post["special_tokens"]["<s>"]["tokens"] = ["<s>"] * len(ids)
    with pytest.raises(InputError, match=r"gives a text the id|the ids of a text do not begin"):
        Tokenizer.load(changed(tokenizer, tmp_path, {"post_processor": post}))


def test_vocabularies_with_wrong_ids_or_without_their_unknown_token_are_refused(tokenizer, tmp_path):
    words = {token: i for i, token in enumerate(SPECIAL_TOKENS)}
    for model, message in (
        ({"type": "WordLevel", "vocab": words, "unk_token": "<none>"}, "not a tokenizer"),
        (
            {"type": "WordLevel", "vocab": words | {"far": 9}, "unk_token": "<unk>"},
            "do not have the ids 0 to 5",
        ),
        (
            {
                "type": "WordPiece",
                "vocab": words,
                "unk_token": "<unk>",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 10**9,
            },
            "max_input_chars_per_word is over 1,000",
        ),
    ):
        values = json.loads(tokenizer.backend.to_str()) | {"model": model}
        (tmp_path / "tokenizer.json").write_text(json.dumps(values))
        with pytest.raises(InputError, match=message):
            Tokenizer.load(tmp_path / "tokenizer.json")


def test_cheap_rules_of_others_and_stored_padding_are_accepted(tokenizer, tmp_path):
    padding = {"strategy": {"Fixed": 10**9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 1}
    change = sequence({"type": "Lowercase"}, regex(r"[^a-z\s]+", " "), text("colour", "color"))
    change["padding"] = padding | {"pad_type_id": 0, "pad_token": "<pad>"}
    change["truncation"] = {"direction": "Left", "max_length": 3, "strategy": "LongestFirst", "stride": 9}
    loaded = Tokenizer.load(changed(tokenizer, tmp_path, change))
    assert loaded.encode(["Colour 12 of x"]) == loaded.encode(["color   of x"])


def test_a_panic_of_the_library_is_an_error_in_one_line(tokenizer):
    backend = tokenizers.Tokenizer.from_str(tokenizer.backend.to_str())
    loaded = Tokenizer(backend)
    backend.normalizer = tokenizers.normalizers.Replace(tokenizers.Regex("(o+)+$"), "")
    with pytest.raises(InputError, match=r"the tokenizer cannot split a text .*retry-limit"):
        loaded.encode(["o" * 50 + "!"])
