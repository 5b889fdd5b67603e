"""Text metrics of words and characters: BLEU, ROUGE, chrF, Jaccard and tf-idf."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from simllm.array_types import Floats
from simllm.metrics.text.readable_texts import TextScorer

_ORDER = 4
_ZERO = f"share no {_ORDER} consecutive words, so their BLEU is 0; bleu-smoothed tells them apart"


def load_bleu(weights: Sequence[float]) -> TextScorer:
    """Load sentence BLEU (Papineni et al., 2002) without smoothing, from nltk; scores are from 0 to 1.

    The evaluations with which the SIMLLM paper compares its results compute BLEU in this way. `weights` are
    the exponents of the precisions of 1-grams, 2-grams and so on in their geometric mean: (0, 1) uses only
    the precision of 2-grams. Texts are split at white space.
    """
    from nltk.translate.bleu_score import sentence_bleu

    def score(candidates: Sequence[str], references: Sequence[str]) -> Floats:
        pairs = [(c.split(), [r.split()]) for c, r in zip(candidates, references, strict=True)]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="nltk")  # n-gram counts of 0 are expected here
            # Without a common 4-gram, nltk returns a number below 1e-76 instead of 0. The number is kept,
            # because the published correlations rank such pairs by these numbers.
            return np.array([sentence_bleu(r, c, weights=tuple(weights)) for c, r in pairs], float)

    order = len(weights)
    return TextScorer(
        score,
        lambda text: len(text.split()) >= order,
        f"of fewer than {order} words" if order > 1 else "without words",
        _ZERO if weights[0] and order == _ORDER else "",
    )


def load_smoothed_bleu() -> TextScorer:
    """Load the sentence BLEU of sacrebleu, which ends at the candidate's longest n-grams; from 0 to 1."""
    from sacrebleu.metrics.bleu import BLEU

    bleu = BLEU(tokenize="none", effective_order=True)  # "none" splits at white space

    def score(candidates: Sequence[str], references: Sequence[str]) -> Floats:
        pairs = zip(candidates, references, strict=True)
        return np.array([bleu.sentence_score(c, [r]).score / 100 for c, r in pairs], float)

    return TextScorer(score)


def corpus_bleu(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Compute the BLEU of n candidates as one corpus, from 0 to 1; `references` are lists of n references.

    The n-grams of all candidates are counted before precisions are computed, as Papineni et al. defined it.
    """
    from sacrebleu.metrics.bleu import BLEU

    # `force` silences an advice about tokens, which are split at white space here as in the other BLEUs.
    return BLEU(tokenize="none", force=True).corpus_score(list(candidates), [*references]).score / 100


_OF_LETTERS = "of Latin letters or digits"
_UNREADABLE = {1: f"without words {_OF_LETTERS}", 2: f"with fewer than two words {_OF_LETTERS}"}


def load_rouge(kind: str) -> TextScorer:
    """Load ROUGE-1, ROUGE-2 or ROUGE-L (Lin, 2004) on stemmed words, from Google's package rouge-score.

    `kind` is `rouge1`, `rouge2` or `rougeL`; scores are F1, from 0 to 1.
    """
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer([kind], use_stemmer=True)
    # The scorer's own tokenizer, so that both always read the same words.
    tokenize = scorer._tokenizer.tokenize

    def score_one(candidate: str, reference: str) -> float:
        if kind != "rougeL":
            return float(scorer.score(reference, candidate)[kind].fmeasure)
        a, b = tokenize(candidate), tokenize(reference)
        return 2 * lcs_length(a, b) / (len(a) + len(b)) if a and b else 0.0

    def score(candidates: Sequence[str], references: Sequence[str]) -> Floats:
        return np.array([score_one(*pair) for pair in zip(candidates, references, strict=True)], float)

    needed = 2 if kind == "rouge2" else 1
    return TextScorer(score, lambda text: len(tokenize(text)) >= needed, _UNREADABLE[needed])


def lcs_length(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the length of the longest common subsequence of two lists of words.

    rouge-score builds a table of all pairs of words, which takes gigabytes for long texts. Here, a row of the
    table is the bits of one number (Hyyrö, 2004): a 0 stands where the length grows by 1.
    """
    places: defaultdict[str, int] = defaultdict(int)
    for place, word in enumerate(a):
        places[word] |= 1 << place
    row = every = (1 << len(a)) - 1
    for word in b:
        matched = row & places.get(word, 0)
        row = ((row + matched) | (row - matched)) & every
    return len(a) - row.bit_count()


_WEIGHT = 1.2  # of ROUGE-W: a run of k consecutive matches counts k^1.2, as in Lin's package


def load_rouge_w() -> TextScorer:
    """Load ROUGE-W: the longest common subsequence, with more weight on consecutive matches.

    The definition is in Lin, "ROUGE: a package for automatic evaluation of summaries", 2004, section 4. No
    maintained library has it. Words are stemmed; scores are F1, from 0 to 1.
    """
    from nltk.stem.porter import PorterStemmer
    from rouge_score.tokenize import tokenize

    stemmer = PorterStemmer()

    def score(candidates: Sequence[str], references: Sequence[str]) -> Floats:
        pairs = zip(candidates, references, strict=True)
        return np.array([rouge_w(tokenize(c, stemmer), tokenize(r, stemmer)) for c, r in pairs], float)

    return TextScorer(score, lambda text: bool(tokenize(text, stemmer)), _UNREADABLE[1])


def rouge_w(candidate: Sequence[str], reference: Sequence[str], weight: float = _WEIGHT) -> float:
    """Compute ROUGE-W of two lists of words: F1 (eq. 13 to 15 of Lin, 2004)."""
    common = _weighted_lcs(candidate, reference, weight)
    if not common:
        return 0.0
    # The root undoes the power: a text that matches itself has precision and recall 1.
    precision, recall = ((common / len(words) ** weight) ** (1 / weight) for words in (candidate, reference))
    return 2 * precision * recall / (precision + recall)


def _weighted_lcs(a: Sequence[str], b: Sequence[str], weight: float) -> float:
    """Compute the longest common subsequence, k consecutive matches counting k^w (Lin, 2004: WLCS)."""
    # Two rows of the table at a time: the whole table takes gigabytes for long texts.
    best = [0.0] * (len(b) + 1)  # for the words of a so far and the first j words of b
    run = [0] * (len(b) + 1)  # consecutive matches that end at these words
    for x in a:
        above, best, above_run, run = best, [0.0], run, [0]
        for j, y in enumerate(b):
            k = above_run[j]
            run.append(k + 1 if x == y else 0)
            best.append(above[j] + (k + 1) ** weight - k**weight if x == y else max(above[j + 1], best[j]))
    return best[-1]


def load_chrf() -> TextScorer:
    """Load chrF (Popović, 2015): F2 of character n-grams, for n from 1 to 6, by sacrebleu; from 0 to 1."""
    from sacrebleu.metrics.chrf import CHRF

    chrf = CHRF()

    def score(candidates: Sequence[str], references: Sequence[str]) -> Floats:
        pairs = zip(candidates, references, strict=True)
        return np.array([chrf.sentence_score(c, [r]).score / 100 for c, r in pairs], float)

    return TextScorer(score)


def load_jaccard() -> TextScorer:
    """Load the Jaccard similarity of the sets of words in two texts; scores are from 0 to 1."""
    return TextScorer(jaccard)


def jaccard(candidates: Sequence[str], references: Sequence[str]) -> Floats:
    """Compute (n,) Jaccard similarities: intersection over union; two empty texts have 1."""
    pairs = [(set(c.split()), set(r.split())) for c, r in zip(candidates, references, strict=True)]
    return np.array([len(c & r) / len(c | r) if c | r else 1.0 for c, r in pairs], float)


def load_tf_idf() -> TextScorer:
    """Load the cosine of tf-idf vectors, by scikit-learn; scores are from 0 to 1.

    Words of one letter are ignored. There is no corpus: document frequencies are counted in the two texts
    that are compared (as in Haque et al., 2022).
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer().build_analyzer()

    def cosine(candidate: str, reference: str) -> float:
        vectorizer = TfidfVectorizer()
        if not words(candidate) and not words(reference):
            return 0.0
        vectors = vectorizer.fit_transform([candidate, reference])
        return float((vectors[0] @ vectors[1].T).sum())

    def score(candidates: Sequence[str], references: Sequence[str]) -> Floats:
        return np.array([cosine(c, r) for c, r in zip(candidates, references, strict=True)], float)

    return TextScorer(score, lambda text: bool(words(text)), "without words of two or more letters")
