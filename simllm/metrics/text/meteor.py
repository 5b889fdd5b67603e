"""METEOR (Banerjee and Lavie, 2005), from nltk, with the WordNet of nltk or of the system."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simllm.metrics.text import ScoreFunction, UnavailableError

_SYSTEM = Path("/usr/share/wordnet")  # from the package wordnet-base on Debian and Ubuntu
_CATEGORIES = 45  # number of lexicographer files
_REMEDY = (
    "needs the data of WordNet 3.0, which no Python package brings: "
    "apt-get install wordnet-base, or python -m nltk.downloader wordnet"
)


def load() -> ScoreFunction:
    """Return the scoring function; scores are 0..1, and texts are split at spaces."""
    from nltk.translate.meteor_score import single_meteor_score

    words = wordnet()

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        pairs = zip(candidates, references, strict=True)
        return np.array([single_meteor_score(r.split(), c.split(), wordnet=words) for c, r in pairs], float)

    return score


def data() -> dict[str, Path]:
    """Return the folder or the archive of WordNet."""
    root = _root()
    return {"wordnet": Path(root.zipfile.filename if hasattr(root, "zipfile") else root)}


@cache
def wordnet() -> Any:
    """Open WordNet with nltk; raise UnavailableError if it is missing or damaged."""
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class PlainReader(WordNetCorpusReader):  # type: ignore[misc]  # nltk is untyped
        """Reader without the file `lexnames`, which the system's WordNet lacks and METEOR does not use."""

        def map_wn(self, *_: Any) -> None:
            return None

        def open(self, file: str) -> Any:
            if file == "lexnames":
                return io.StringIO("".join(f"{number} - 0\n" for number in range(_CATEGORIES)))
            return super().open(file)

    warnings.filterwarnings("ignore", "The multilingual functions", module="nltk")
    root = _root()
    try:
        return PlainReader(root, None)
    except OSError as error:
        raise UnavailableError(f"{root}: nltk cannot read this WordNet ({error})") from None


def _root() -> Any:
    """Find WordNet in nltk's data (as a folder or an archive) or on the system."""
    import nltk

    for place in ("corpora/wordnet", "corpora/wordnet.zip/wordnet/"):  # the downloader leaves the archive
        with contextlib.suppress(LookupError):
            return nltk.data.find(place)
    if not (_SYSTEM / "index.noun").is_file():
        raise UnavailableError(_REMEDY)
    if str(_SYSTEM.parent) not in nltk.data.path:
        nltk.data.path.append(str(_SYSTEM.parent))  # otherwise nltk refuses to read there
    return str(_SYSTEM)
