"""METEOR, and the dictionary WordNet that it needs, from nltk or from the operating system."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simllm.array_types import Floats
from simllm.metrics.interface import UnavailableError
from simllm.metrics.text.readable_texts import TextScorer

_SYSTEM = Path("/usr/share/wordnet")  # from the package wordnet-base on Debian and Ubuntu
_CATEGORIES = 45  # number of lexicographer files
_REMEDY = (
    "needs the data of WordNet 3.0, which no Python package brings: "
    "apt-get install wordnet-base, or python -m nltk.downloader wordnet"
)


def load_meteor() -> TextScorer:
    """Load METEOR (Banerjee and Lavie, 2005) from nltk; scores are from 0 to 1.

    Texts are split into words at white space.
    """
    from nltk.translate.meteor_score import single_meteor_score

    words = open_wordnet()

    def score(candidates: Sequence[str], references: Sequence[str]) -> Floats:
        pairs = zip(candidates, references, strict=True)
        return np.array([single_meteor_score(r.split(), c.split(), wordnet=words) for c, r in pairs], float)

    root = find_wordnet()
    place = Path(root.zipfile.filename if hasattr(root, "zipfile") else root)
    return TextScorer(score, data={"wordnet": place})


def find_wordnet() -> Any:
    """Find WordNet: nltk's path object, or the `Path` of the operating system's folder."""
    import nltk

    for place in ("corpora/wordnet", "corpora/wordnet.zip/wordnet/"):  # the downloader leaves the archive
        with contextlib.suppress(LookupError):
            return nltk.data.find(place)
    if not (_SYSTEM / "index.noun").is_file():
        raise UnavailableError(_REMEDY)
    return _SYSTEM


def open_wordnet() -> Any:
    """Open WordNet with nltk; raise UnavailableError if it is missing or damaged."""
    from nltk.corpus.reader.wordnet import WordNetCorpusReader
    from nltk.data import PathPointer, SeekableUnicodeStreamReader

    # The path classes of nltk refuse files outside the folders in `nltk.data.path`.
    class SystemFile(PathPointer):  # type: ignore[misc]  # nltk is untyped
        """Path in nltk's form to an installed WordNet folder, or to a file in it."""

        def __init__(self, path: Path) -> None:
            self.path = path

        def join(self, name: str) -> SystemFile:
            return SystemFile(self.path / name)

        def open(self, encoding: str) -> Any:
            return SeekableUnicodeStreamReader(self.path.open("rb"), encoding)

        def file_size(self) -> int:
            return self.path.stat().st_size

    # The WordNet of the operating system lacks the file `lexnames`, and METEOR does not use this file.
    class PlainReader(WordNetCorpusReader):  # type: ignore[misc]
        """nltk's reader of WordNet, which does not need the file `lexnames`."""

        def map_wn(self, *_: Any) -> None:
            return None

        def open(self, file: str) -> Any:
            if file == "lexnames":
                return io.StringIO("".join(f"{number} - 0\n" for number in range(_CATEGORIES)))
            return self._root.join(file).open("utf8")

    root = find_wordnet()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The multilingual functions")
            return PlainReader(SystemFile(root) if root == _SYSTEM else root, None)
    except OSError as error:
        raise UnavailableError(f"{root}: nltk cannot read this WordNet ({error})") from None
