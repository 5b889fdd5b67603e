"""The metrics of Sheikhaei et al., with the defects of their published code, to reproduce its scores.

The paper is "Understanding the Effectiveness of LLMs in Automated Self-Admitted Technical Debt Repayment".
Its code handles Python and Java. Known defects:

- Comment marks in Java strings count as comments.
- CrystalBLEU compares characters instead of tokens.
- Comments are removed twice: from the whole code, and again from the edited lines.
- LEMOD is 0 if the candidate or the reference changes no line of the source.
- An empty candidate may score above 0.
"""

from __future__ import annotations

import ast
import math
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from difflib import ndiff
from functools import partial

from simllm.errors import InputError
from simllm.metrics.code.bleu import SHARED, NGram, bleu_of_lists, ngrams, tokenize
from simllm.metrics.code.code_metric import CodeScorer
from simllm.metrics.interface import Example

_SPACE = re.compile(r"\s+")
_PYTHON_STRINGS = re.compile(r"('''|\"\"\").*?\1", re.DOTALL)
_PYTHON_COMMENT = re.compile(r"(?<!\\)#.*")
_JAVA_LINE, _JAVA_BLOCK = re.compile(r"//.*"), re.compile(r"/\*.*?\*/", re.DOTALL)
_EMPTY_LINES = re.compile(r"\n\s*\n")
_FENCE = "```"
_PYTHON_BEGIN = re.compile(r"\s*(?:def|class) ")
_JAVA_BEGIN = re.compile(
    r"\s*(?:public|private|protected|class|interface|void|int|String|boolean|double|float|char)(?!\S)"
)
TextScore = Callable[[str, str], float]


def code_of_reply(reply: str, language: str) -> str:
    """Find the code in a reply in the same way as the published code; "" if there is none.

    The code is the closed section between fences with the most lines, whatever its label. Without such a
    section, it begins at the first line that looks like a definition, or after the first fence, and ends
    before the next line that has a fence or begins with a capital letter.
    """
    _check_language(language)
    lines, longest = reply.split("\n"), (0, 0)
    fences = [number for number, line in enumerate(lines) if _FENCE in line]
    for opened, closed in zip(fences[::2], fences[1::2], strict=False):
        longest = max(longest, (opened + 1, closed), key=lambda section: section[1] - section[0])
    if code := "\n".join(lines[slice(*longest)]):
        return code
    looks = _JAVA_BEGIN if language == "java" else _PYTHON_BEGIN
    begins = [number for number, line in enumerate(lines) if looks.match(line)][:1]
    begins += [number + 1 for number in fences[:1]]
    if not begins:
        return ""
    begin = min(begins)
    rest = range(begin + 1, len(lines))
    end = next((n for n in rest if _FENCE in lines[n] or lines[n][:1].isupper()), len(lines))
    return "\n".join(lines[begin:end])


def exact_match(example: Example) -> float:
    """Return 1 if candidate and reference are equal without comments, imports and white space, else 0."""
    candidate, reference = _stripped(example.candidate, example.reference or "", example.language)
    # The published code formats Python with black. `ast.unparse` is equivalent here, because white space is
    # removed.
    return float(candidate == reference or _SPACE.sub("", candidate) == _SPACE.sub("", reference) != "")


def whole_score(example: Example, score: TextScore) -> float:
    """Score the whole candidate against the whole reference, both without comments and imports."""
    return score(*_stripped(example.candidate, example.reference or "", example.language))


def edit_score(example: Example, score: TextScore) -> float:
    """Score the candidate's edited lines against the reference's edited lines."""
    texts = (_edit(example, example.candidate), _edit(example, example.reference or ""))
    return score(*_stripped(*texts, example.language))


def lemod(example: Example, part: str) -> float:
    """Compute the "precision", "recall" or "f1" (`part`) of the candidate's edited lines."""

    def compare(candidate: str, reference: str) -> float:
        edited, expected = (
            {line for line in (_SPACE.sub("", line) for line in text.split("\n")) if line}
            for text in (candidate, reference)
        )
        common = len(edited & expected)
        if not common:
            return 0.0
        precision, recall = common / len(edited), common / len(expected)
        f1 = 2 * precision * recall / (precision + recall)
        return {"precision": precision, "recall": recall, "f1": f1}[part]

    return edit_score(example, compare)


def token_bleu(candidate: str, reference: str) -> float:
    """Compute BLEU-4 over tokens of code, with smoothing method 4 of nltk; two empty texts score 0."""
    return bleu_of_lists(tokenize(candidate), tokenize(reference))


def shared_characters(references: Sequence[str], k: int = SHARED) -> frozenset[NGram]:
    """Find the n-grams that CrystalBLEU as published ignores, from all references of one language.

    Of the `k` most frequent n-grams of words, for n from 1 to 4 together, these are the ones that can have an
    effect.
    """
    words = " ".join(references).split()
    counts = Counter(ngram for order in (1, 2, 3, 4) for ngram in ngrams(words, order))
    # The published code ranks n-grams of words, but computes BLEU over n-grams of characters. Both are equal
    # only if each word is a single character, as in ("=", "0").
    return frozenset(ngram for ngram, _ in counts.most_common(k) if all(len(word) == 1 for word in ngram))


def crystal_bleu(candidate: str, reference: str, shared: Collection[NGram]) -> float:
    """Compute CrystalBLEU as published: over characters instead of tokens, and without smoothing."""
    logs = 0.0
    for order in (1, 2, 3, 4):
        counts, wanted = (
            Counter(ngram for ngram in ngrams(list(text), order) if ngram not in shared)
            for text in (candidate, reference)
        )
        matches = (counts & wanted).total()
        if order == 1 and not matches:
            return 0.0
        share = matches / max(1, counts.total()) if matches else sys.float_info.min
        logs += math.log(share)
    return math.exp(min(0.0, 1 - len(reference) / len(candidate)) + logs / 4)


def _edit(example: Example, text: str) -> str:
    """Return the edited lines of a candidate or reference (`text`), in the order of `difflib.ndiff`."""
    changed, source = _stripped(text, example.source or "", example.language)
    lines = ndiff(source.splitlines(), changed.splitlines())
    return "\n".join(line[2:] for line in lines if line.startswith(("+ ", "- ")))


def _stripped(first: str, second: str, language: str | None) -> tuple[str, str]:
    """Return two pieces of code without comments and imports, and without docstrings in Python."""
    _check_language(language)
    try:
        strip = _strip_java if language == "java" else _print_python
        # If one of the two pieces does not parse, both are changed by regular expressions, so that they stay
        # comparable.
        stripped = strip(first), strip(second)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        stripped = _strip_python(first), _strip_python(second)
    return _without_imports(stripped[0]), _without_imports(stripped[1])


def _check_language(language: str | None) -> None:
    if language not in ("java", "python"):
        raise InputError(f"language {language!r}: the published code handles java and python only")


def _print_python(text: str) -> str:
    """Format Python code, without comments and without statements that are only a string (docstrings)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_string(each)]  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _is_string(node: ast.AST) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _strip_python(text: str) -> str:
    stripped = _PYTHON_COMMENT.sub("", _PYTHON_STRINGS.sub("", text))
    return "\n".join(line for line in stripped.split("\n") if line.strip())


def _strip_java(text: str) -> str:
    text = _JAVA_LINE.sub("", text)
    end = text.rfind("*/") + 2  # behind it, each /* would be followed to the end of the text
    return _EMPTY_LINES.sub("\n", _JAVA_BLOCK.sub("", text[:end]) + text[end:])


def _without_imports(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(line for line in lines if not line.lstrip().startswith(("import ", "from ")))


def load(kind: str) -> CodeScorer:
    """Load a metric as published; `kind` is "crystalbleu", "crystalbleu-diff" or a key of `_METRICS`."""
    if kind in _METRICS:
        return CodeScorer(lambda examples: list(map(_METRICS[kind], examples)))
    compare = whole_score if kind == "crystalbleu" else edit_score

    def compute(examples: Sequence[Example]) -> list[float]:
        by_language: dict[str | None, list[str]] = {}
        for example in examples:
            by_language.setdefault(example.language, []).append(example.reference or "")
        shared = {language: shared_characters(texts) for language, texts in by_language.items()}
        return [compare(one, partial(crystal_bleu, shared=shared[one.language])) for one in examples]

    return CodeScorer(compute)


_METRICS: dict[str, Callable[[Example], float]] = {
    "exact-match": exact_match,
    "lemod": partial(lemod, part="f1"),
    "lemod-precision": partial(lemod, part="precision"),
    "lemod-recall": partial(lemod, part="recall"),
    "token-bleu": partial(whole_score, score=token_bleu),
    "bleu-diff": partial(edit_score, score=token_bleu),
}
