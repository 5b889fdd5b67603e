"""The kinds of edits that keep the meaning of a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from simllm.perturb.summaries.lexicon import Lexicon
from simllm.perturb.summaries.numerals import numerals
from simllm.perturb.summaries.synonyms_and_abbreviations import abbreviations, synonyms
from simllm.perturb.summaries.typos_case_and_articles import articles, case, punctuation, typos

KINDS: dict[str, Callable[[str, Lexicon, np.random.Generator], Iterator[str]]] = {
    "case": case,
    "punctuation": punctuation,
    "articles": articles,
    "typo": typos,
    "abbreviation": abbreviations,
    "numeral": numerals,
    "synonym": synonyms,
}
