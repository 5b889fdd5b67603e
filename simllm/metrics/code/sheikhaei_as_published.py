"""The metrics of Sheikhaei et al., with the defects of their published code, to reproduce its scores.

The paper is "Understanding the Effectiveness of LLMs in Automated Self-Admitted Technical Debt Repayment".
Its code handles Python and Java. Known defects:

- Comment marks in Java strings count as comments.
- CrystalBLEU (a BLEU that ignores frequent n-grams) compares characters instead of tokens.
- Comments are removed twice: from the whole code, and again from the list of deleted and inserted lines.
- LEMOD (precision, recall or F1 of deleted and inserted lines) is 0 if the candidate or the reference
  changes no line of the source.
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
from simllm.metrics.code.code_tokens import NGram, ngrams, tokenize
from simllm.metrics.code.crystalbleu import SHARED
from simllm.metrics.code.token_bleu import bleu_of_lists
from simllm.metrics.metric_interface import Example

_SPACE = re.compile(r"\s+")
_PYTHON_STRINGS = re.compile(r"('''|\"\"\").*?\1", re.DOTALL)
_PYTHON_COMMENT = re.compile(r"(?<!\\)#.*")
_JAVA = [(re.compile(r"//.*"), ""), (re.compile(r"/\*.*?\*/", re.DOTALL), ""), (re.compile(r"\n\s*\n"), "\n")]
_FENCE = "```"
_PYTHON_BEGIN = re.compile(r"\s*(?:def|class) ")
_JAVA_BEGIN = re.compile(
    r"\s*(?:public|private|protected|class|interface|void|int|String|boolean|double|float|char)(?!\S)"
)
TextScore = Callable[[str, str], float]


def code_of_reply(reply: str, language: str) -> str:
    """Find the code in a reply in the same way as the published code of Sheikhaei et al.

    The code is the closed section between fences with the most lines, whatever its label. Without such a
    section, it begins at the first line that looks like a definition, or after the first fence, and ends
    before the next line that has a fence or begins with a capital letter. A reply without code gives "".

    Raises:
        InputError: The language is not java or python.
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
    """Return 1 if candidate and reference are equal without comments, imports and white space, else 0.

    The published code of Sheikhaei et al. gives the same result. Before the comparison, their code formats
    Python code with black. This function uses `ast.unparse` instead, which is equivalent for this comparison.
    """
    candidate, reference = _stripped(example.candidate, example.reference, example.language)
    return float(candidate == reference or _SPACE.sub("", candidate) == _SPACE.sub("", reference) != "")


def whole_score(example: Example, score: TextScore) -> float:
    """Score the whole candidate against the whole reference, both without comments and imports.

    By contrast, `edit_score` compares only the lines that were edited.

    Args:
        example: The candidate and the reference, with their language.
        score: The function that scores a candidate text against a reference text.
    """
    return score(*_stripped(example.candidate, example.reference, example.language))


def edit_score(example: Example, score: TextScore) -> float:
    """Score the candidate's edited lines against the reference's edited lines.

    The source is the code before an edit. The candidate and the reference are two edited versions of the
    source. The edited lines of a version are the lines that were deleted from the source or inserted into it.

    Args:
        example: The candidate and the reference, with their source and language.
        score: The function that scores a candidate text against a reference text.
    """
    texts = (_edit(example, example.candidate), _edit(example, example.reference))
    return score(*_stripped(*texts, example.language))


def lemod(example: Example, part: str) -> float:
    """Compute LEMOD in the same way as the published code of Sheikhaei et al.

    The source is the code before an edit. LEMOD takes the lines that the candidate deletes from the source or
    inserts into the source, and compares them with the lines that the reference deletes or inserts. The
    result is the precision, recall or F1 of the candidate's lines. The result is 0 if the candidate or the
    reference changes no line.

    Args:
        example: The candidate and the reference, with their source and language.
        part: The value to compute: "precision", "recall" or "f1".
    """

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
    """Find the n-grams that the published code of Sheikhaei et al. ignores when it computes CrystalBLEU.

    CrystalBLEU is a BLEU that ignores frequent n-grams. The published code has a defect: it chooses the k
    most frequent n-grams of words, but computes BLEU over n-grams of characters. An n-gram of words equals an
    n-gram of characters only if each word is a single character, as in ("=", "0"). This function returns only
    such n-grams, because the other chosen n-grams have no effect.

    Args:
        references: All references of one language. They are joined, and split into words at white space.
        k: The number of n-grams of words that are chosen. The n-grams with n = 1, 2, 3 and 4 are ranked
            together.
    """
    words = " ".join(references).split()
    counts = Counter(ngram for order in (1, 2, 3, 4) for ngram in ngrams(words, order))
    return frozenset(ngram for ngram, _ in counts.most_common(k) if all(len(word) == 1 for word in ngram))


def crystal_bleu(candidate: str, reference: str, shared: Collection[NGram]) -> float:
    """Compute CrystalBLEU in the same way as the published code of Sheikhaei et al.

    CrystalBLEU is a BLEU that ignores frequent n-grams. The published code computes it over characters
    instead of tokens, and without smoothing.

    Args:
        candidate: The code to judge.
        reference: The code to compare it with.
        shared: The n-grams to ignore.
    """
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
    """Return the lines of code that an edit deletes or inserts.

    The edit turns the source of an example (the code before the edit) into the candidate or the reference.
    Lines are compared after the removal of comments and imports, and of docstrings in Python.

    Args:
        example: The example, with its source and language.
        text: The candidate or the reference of the example.

    Returns:
        The lines, joined in the order of `difflib.ndiff`. The signs "-" and "+" that `ndiff` puts before them
        are removed.
    """
    changed, source = _stripped(text, example.source or "", example.language)
    lines = ndiff(source.splitlines(), changed.splitlines())
    return "\n".join(line[2:] for line in lines if line.startswith(("+ ", "- ")))


def _stripped(first: str, second: str, language: str | None) -> tuple[str, str]:
    """Return two pieces of code without comments and imports, and without docstrings in Python.

    Python code is parsed. If one of the two pieces cannot be parsed, regular expressions process both of them
    instead, so that both are changed in the same way.
    """
    _check_language(language)
    try:
        strip = _strip_java if language == "java" else _print_python
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
    for pattern, new in _JAVA:
        text = pattern.sub(new, text)
    return text


def _without_imports(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(line for line in lines if not line.lstrip().startswith(("import ", "from ")))


def prepare(kind: str, examples: Sequence[Example]) -> Callable[[Example], float]:
    """Return the function that scores one example in the same way as the published code of Sheikhaei et al.

    An example has two versions of the code after an edit: the candidate and the reference. Metrics that
    compare edits also need its source, the code before the edit.

    Args:
        kind: The name of the metric: "crystalbleu", "crystalbleu-diff", or a key of `METRICS` such as
            "lemod". "crystalbleu" compares the whole code. "crystalbleu-diff" compares only the lines that
            each version deletes from the source or inserts into it.
        examples: All examples that will be scored. Only CrystalBLEU needs them in advance: it ignores the
            n-grams that are most frequent in the references of all examples with the same language.
    """
    if kind in ("crystalbleu", "crystalbleu-diff"):
        by_language: dict[str | None, list[str]] = {}
        for example in examples:
            by_language.setdefault(example.language, []).append(example.reference)
        shared = {language: shared_characters(texts) for language, texts in by_language.items()}
        compare = whole_score if kind == "crystalbleu" else edit_score
        return lambda example: compare(example, partial(crystal_bleu, shared=shared[example.language]))
    return METRICS[kind]


METRICS: dict[str, Callable[[Example], float]] = {
    "exact-match": exact_match,
    "lemod": partial(lemod, part="f1"),
    "lemod-precision": partial(lemod, part="precision"),
    "lemod-recall": partial(lemod, part="recall"),
    "token-bleu": partial(whole_score, score=token_bleu),
    "bleu-diff": partial(edit_score, score=token_bleu),
}
