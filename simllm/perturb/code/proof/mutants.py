"""Generation of mutants: variants (rewritten functions) with a deliberate mistake.

Mutants and the original function are run on the same inputs. Good inputs should reveal the mistake. The
share of mutants whose mistake the inputs reveal therefore measures the quality of the inputs.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from simllm.perturb.code.names import rename_text
from simllm.perturb.code.proof.verdicts import ProofCase

_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)|#[^\n]*"
    r"|\"(?:\\.|[^\"\\\n])*+\"?|'(?:\\.|[^'\\\n])*+'?"
    r"|[^\W\d][\w$]*|\d[\w.]*|\+\+|--|<<=|>>=|\*\*|//|->|:=|[-+*/%&|^!<>=]=|&&|\|\||\S",
    re.DOTALL,
)
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_WIDENED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_NEGATED = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}
# Strings match, too. A search that begins inside a long word, or an endless expression, takes quadratic time.
_UPDATE = re.compile(
    r"\+\+\s*+[\w.\[\]()]++\s*+(?=;)|--\s*+[\w.\[\]()]++\s*+(?=;)"
    r"|(?<![\w.\[\]()])[\w.\[\]()]++\s*+(?:\+\+|--)\s*+(?=;)"
    r"|(?<![\w.])[\w.]++\s*+[-+*/]=\s*+[^;\n{}]{1,400}(?<=\S)(?=;|[ \t]{0,40}$)",
    re.MULTILINE,
)
_NEGATED_RELATION = re.compile(r"(?:!|\bnot\s*+)\(([^()&|?<>]{0,400}?)\s(<=|>=|<|>)\s([^()&|?]{0,400})\)")
_MOST_TOKENS = 20_000
_LONGEST_NUMBER = 1000  # digits; Python does not convert much longer ones
_FRACTIONS = re.compile(r"\b(?:double|float|Double|Float)\b|\d\.\d")


def make_mutants(case: ProofCase, number: int, seed: int) -> list[str]:
    """Make wrong versions of a variant (a rewritten function), each with one deliberate mistake.

    The mistake is made in code that the rewrite changed, if possible, and otherwise anywhere. The kinds of
    mistakes are typical of careless rewrites:

    - An update such as `i += 1` is missing.
    - `not (a < b)` becomes `a >= b`, which is wrong for NaN.
    - A `not` or `!` is missing.
    - A comparison is wrong, such as `a > b` or `a <= b` instead of `a < b`.
    - A number is too large by 1, or `+` and `-` are confused.
    - At one place, a renamed variable has its old name.

    Args:
        case: The function and its variant.
        number: The largest number of wrong versions. Each has a different kind of mistake.
        seed: The seed for choosing the place of a mistake.

    Returns:
        The sources of the wrong versions; an empty list if no mistake can be made.
    """
    choice = random.Random(f"{seed} {case.id}")
    changed = _changed_characters(case)
    for places in (changed, frozenset(range(len(case.variant)))):
        found: dict[str, list[tuple[int, int, str]]] = {}
        for kind, start, end, text in _mistakes(case):
            if not places.isdisjoint(range(start, end)) and _differs(case, start, end, text):
                found.setdefault(kind, []).append((start, end, text))
        if found:
            return [_replaced(case, *choice.choice(edits)) for edits in found.values()][:number]
    return []


def _replaced(case: ProofCase, start: int, end: int, text: str) -> str:
    return case.variant[:start] + text + case.variant[end:]


def _differs(case: ProofCase, start: int, end: int, text: str) -> bool:
    """Return whether an edit leads to neither the variant nor the original."""
    if text == case.variant[start:end]:
        return False
    length = len(case.variant) - (end - start) + len(text)
    return length != len(case.original) or _replaced(case, start, end, text) != case.original


def _changed_characters(case: ProofCase) -> frozenset[int]:
    """Return the indices of the characters of a variant (rewritten function) that were changed or moved.

    Renamed symbols do not count as changes. If possible, `make_mutants` makes its deliberate mistakes
    at these characters.
    """
    old = _TOKEN.findall(rename_text(case.original, case.names))
    tokens = list(_TOKEN.finditer(case.variant))
    if max(len(old), len(tokens)) > _MOST_TOKENS:  # the comparison takes quadratic time
        return frozenset()
    matcher = SequenceMatcher(None, old, [token[0] for token in tokens], autojunk=False)
    return frozenset(
        place
        for tag, _, _, first, last in matcher.get_opcodes()
        if tag != "equal"
        for token in tokens[first:last]
        for place in range(*token.span())
    )


def _mistakes(case: ProofCase) -> Iterator[tuple[str, int, int, str]]:
    """Find all deliberate mistakes that can be made in a variant (a rewritten function).

    Yields:
        The kind of mistake, the start and the end of the range of characters to replace, and the new text.
        The kinds of mistakes that `make_mutants` prefers come first.
    """
    text = case.variant
    for update in _UPDATE.finditer(text):
        yield "update", *update.span(), "" if case.language == "java" else "pass"
    if _FRACTIONS.search(case.original + case.around) or case.language == "python":
        for found in _NEGATED_RELATION.finditer(text):
            yield "nan", *found.span(), f"({found[1]} {_NEGATED[found[2]]} {found[3]})"
    tokens = [token for token in _TOKEN.finditer(text) if token[0] != "not" or text[token.end() :].strip()]
    for token in tokens:
        if token[0] == "!" or (token[0] == "not" and not text[token.end() :].lstrip().startswith("in ")):
            yield "negation", *token.span(), ""
    for mistakes, kind in ((_MIRRORED, "mirror"), (_WIDENED, "relation")):
        for token in tokens:
            if token[0] in mistakes and _is_relation(text, token):
                yield kind, *token.span(), mistakes[token[0]]
    for token in tokens:
        if token[0].isdecimal() and len(token[0]) <= _LONGEST_NUMBER:
            yield "number", *token.span(), str(int(token[0].lstrip("0") or "0") + 1)
    for token in tokens:
        if token[0] in ("+", "-"):
            yield "sign", *token.span(), "-" if token[0] == "+" else "+"
    old_names = {new: old for old, new in case.names.items()}
    for token in reversed(tokens):
        if token[0] in old_names:
            yield "name", *token.span(), old_names[token[0]]


def _is_relation(text: str, token: re.Match[str]) -> bool:
    """Return whether `<` or `>` is an operator, and not a bracket of type arguments as in `List<String>`.

    An operator is recognized by the white space around it.
    """
    start, end = token.span()
    return text[start - 1 : start].isspace() and text[end : end + 1].isspace()
