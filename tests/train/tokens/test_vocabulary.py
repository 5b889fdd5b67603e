"""Learning of a vocabulary in a child process."""

import os
import sys

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
