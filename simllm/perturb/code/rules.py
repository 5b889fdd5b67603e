"""The names of the rewrite rules, and the rules of each language."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from simllm.errors import InputError
from simllm.perturb.code.units import RewriteRules

LANGUAGES = ("java", "python")
# The kind of symbol that each renaming rule renames.
RENAMES = {"rename-function": "function", "rename-parameter": "parameter", "rename-variable": "variable"}
DEFAULT_RULES = (
    *RENAMES,
    "for-to-while",
    "nest-else-if",
    "reverse-if",
    "swap-relation",
    "swap-equals",
    "expand-increment",
)
OPTIONAL_RULES = ("remove-comments", "expand-compound", "add-braces", "dead-code")


def check_rules(rules: Sequence[str], share: float) -> None:
    """Raise `InputError` if there is no rule, a rule is unknown, or the share is not between 0 and 1.

    The share is the probability with which a rule rewrites each possible place.
    """
    known = ", ".join(DEFAULT_RULES + OPTIONAL_RULES)
    if not rules:
        raise InputError(f"expected the name of at least one rule; known: {known}")
    for rule in rules:
        if rule not in DEFAULT_RULES + OPTIONAL_RULES:
            raise InputError(f"unknown rule {rule!r}; known: {known}")
    if not 0 <= share <= 1:
        raise InputError(f"share must lie between 0 and 1, not {share}")


def find_rules(language: str) -> RewriteRules:
    """Return the rules of a language; raise `InputError` if there are none."""
    if language not in LANGUAGES:
        raise InputError(f"cannot rewrite {language!r}; expected one of {', '.join(LANGUAGES)}")
    rules: RewriteRules = import_module(f"simllm.perturb.code.{language}.rules").RULES
    return rules
