"""Mutants: variants with one deliberate mistake that is typical of careless rewrites."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from simllm.perturb.code.proof.verdicts import ProofCase
from simllm.perturb.code.restoring import rename_text

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
    """Make at most `number` mutants of a variant, each with another kind of mistake."""
    return list(mutants_by_kind(case, seed).values())[:number]


def mutants_by_kind(case: ProofCase, seed: int) -> dict[str, str]:
    """Make a mutant of a variant for each kind of mistake that is possible in it.

    - update: an update such as `i += 1` is missing.
    - nan: `not (a < b)` becomes `a >= b`, which is wrong for NaN.
    - negation: a `not` or `!` is missing.
    - mirror, relation: a comparison is wrong, such as `a > b` or `a <= b` instead of `a < b`.
    - number: a number is too large by 1.
    - sign: `+` and `-` are confused.
    - name: at one place, a renamed variable has its old name.
    """
    choice = random.Random(f"{seed} {case.id}")
    changed = _changed_characters(case)
    # Mistakes are made in code that the rewrite changed, if possible, and otherwise anywhere.
    for places in (changed, frozenset(range(len(case.variant)))):
        found: dict[str, list[tuple[int, int, str]]] = {}
        for kind, start, end, text in _mistakes(case):
            if not places.isdisjoint(range(start, end)) and _differs(case, start, end, text):
                found.setdefault(kind, []).append((start, end, text))
        if found:
            return {kind: _replaced(case, *choice.choice(edits)) for kind, edits in found.items()}
    return {}


def _replaced(case: ProofCase, start: int, end: int, text: str) -> str:
    return case.variant[:start] + text + case.variant[end:]


def _differs(case: ProofCase, start: int, end: int, text: str) -> bool:
    """Return whether an edit leads to neither the variant nor the original."""
    if text == case.variant[start:end]:
        return False
    length = len(case.variant) - (end - start) + len(text)
    return length != len(case.original) or _replaced(case, start, end, text) != case.original


def _changed_characters(case: ProofCase) -> frozenset[int]:
    """Return the indices of the variant's characters that were changed or moved, but not only renamed."""
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
    """Yield the kind of each possible mistake, the range of characters to replace, and the new text.

    Preferred kinds come first.
    """
    text = case.variant
    for update in _UPDATE.finditer(text):
        # An empty statement is `;` in Java, which follows, and `pass` in Python.
        yield "update", *update.span(), "" if case.language == "java" else "pass"
    # In Java without fractions there is no NaN, for which alone this would be a mistake.
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
    """Return whether `<` or `>` stands between white space, and so is no bracket as in `List<String>`."""
    start, end = token.span()
    return text[start - 1 : start].isspace() and text[end : end + 1].isspace()
