"""METEOR (Banerjee and Lavie, 2005) by nltk, with the WordNet of nltk's data or of the system."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simllm.metrics.text import Score, UnavailableError

_SYSTEM = Path("/usr/share/wordnet")  # where Debian and Ubuntu have it
_CATEGORIES = 45  # lexicographers' files
_REMEDY = "needs WordNet: apt-get install wordnet-base, or python -m nltk.downloader wordnet"


def load() -> Score:
    """Return what scores in 0..1; texts are split at spaces."""
    from nltk.translate.meteor_score import single_meteor_score

    words = wordnet()

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        pairs = zip(candidates, references, strict=True)
        return np.array([single_meteor_score(r.split(), c.split(), wordnet=words) for c, r in pairs], float)

    return score


@cache
def wordnet() -> Any:
    """WordNet as nltk reads it; raise UnavailableError where there is none."""
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class Plain(WordNetCorpusReader):  # type: ignore[misc]  # nltk is untyped
        """Does without the file of lexicographers' names: the system's folder lacks it, METEOR needs none."""

        def map_wn(self, *_: Any) -> None:
            return None

        def open(self, file: str) -> Any:
            if file == "lexnames":
                return io.StringIO("".join(f"{number} - 0\n" for number in range(_CATEGORIES)))
            return super().open(file)

    warnings.filterwarnings("ignore", "The multilingual functions", module="nltk")
    try:
        return Plain(nltk.data.find("corpora/wordnet"), None)
    except LookupError:
        if not (_SYSTEM / "index.noun").is_file():
            raise UnavailableError(_REMEDY) from None
        nltk.data.path.append(str(_SYSTEM.parent))  # or nltk will not read there
        return Plain(str(_SYSTEM), None)
