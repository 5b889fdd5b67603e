"""Learning of a vocabulary in a child process."""

import os
import sys

import pytest

from simllm.errors import InputError
from simllm.model.tokenizer import UNK_ID, Tokenizer
from simllm.text_cleaning import clean
from train.tokens import vocabulary


def test_vocabulary_is_learned_in_a_checkout_that_is_not_installed(comments, tmp_path, monkeypatch):
    """Python's option -S hides an installed checkout, so that `train` is found only in the current folder."""
    libraries = os.pathsep.join(path for path in sys.path if path.endswith("site-packages"))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{libraries}" exec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    (tmp_path / "texts.txt").write_text("".join(f"{clean(text)}\n" for text in comments[:300]))
    learned = vocabulary.load_or_learn(tmp_path / "vocabulary", tmp_path / "texts.txt", 300)
    assert learned.backend.get_vocab_size() == 300


def test_words_of_very_long_texts_are_learned(tmp_path):
    short = ["opens a door", "closes two windows", "paints the old house", "sells a garden"] * 10
    long = ["quux grault " * 600] * 12  # 7,200 characters each
    vocabulary.learn(iter(short + long), 90, tmp_path / "v.model")
    tokens = vocabulary.convert(tmp_path / "v.model").encode("quux grault").tokens
    assert tokens == ["<s>", "▁quux", "▁grault", "</s>"]
    vocabulary.learn(iter(long), 85, tmp_path / "long.model")
    assert vocabulary.convert(tmp_path / "long.model").encode("quux").tokens == ["<s>", "▁quux", "</s>"]


def test_only_the_part_of_a_text_that_the_tokenizer_reads_counts(tmp_path):
    texts = ["ab " * 3_334 + "zyzzyva " * 900] * 3
    vocabulary.learn(iter(texts), 78, tmp_path / "v.model")
    backend = vocabulary.convert(tmp_path / "v.model")
    assert backend.encode("ab").tokens == ["<s>", "▁ab", "</s>"]
    assert len(backend.encode("zyzzyva").tokens) > 8


def test_characters_that_no_text_has_are_in_the_vocabulary(tmp_path):
    vocabulary.learn(iter(["aa bb aa", "bb aa"] * 20), 77, tmp_path / "v.model")
    tokenizer = Tokenizer(vocabulary.convert(tmp_path / "v.model"))
    (ids,) = tokenizer.encode(["{q~7} #_`z"])
    assert UNK_ID not in ids


@pytest.mark.parametrize("texts", [[], ["", ""]])
def test_no_texts_is_an_error_that_says_so(tmp_path, texts):
    with pytest.raises(InputError, match="cannot be learned: there are no texts"):
        vocabulary.learn(iter(texts), 100, tmp_path / "v.model")
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    with pytest.raises(InputError, match="cannot be learned: there are no texts"):
        vocabulary.load_or_learn(tmp_path / "vocabulary", tmp_path / "texts.txt", 100)


@pytest.mark.slow
def test_the_last_words_of_a_killed_process_are_shown(tmp_path, monkeypatch):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'check failed: a reason' >&2\nkill -ABRT $$\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    (tmp_path / "texts.txt").write_text("adds two numbers\n")
    with pytest.raises(InputError, match=r"killed by signal 6 \(.*check failed: a reason\)") as error:
        vocabulary.load_or_learn(tmp_path / "vocabulary", tmp_path / "texts.txt", 100)
    assert "memory" not in str(error.value)
