"""The names of the code rewrite rules, default and optional; and functions to check names and find rules."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from simllm.errors import InputError
from simllm.perturb.code.code_unit import RewriteRules

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
    """Check two settings for rewriting code: the names of the rules, and a probability.

    Args:
        rules: The names of the rules to apply.
        share: The probability with which each place that a rule can rewrite is rewritten.

    Raises:
        InputError: There is no rule, a rule is unknown, or the share is not between 0 and 1.
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
    """Return the rewrite rules for a language.

    Raises:
        InputError: The language has no rewrite rules.
    """
    if language not in LANGUAGES:
        raise InputError(f"cannot rewrite {language!r}; expected one of {', '.join(LANGUAGES)}")
    rules: RewriteRules = import_module(f"simllm.perturb.code.{language}.{language}_rules").RULES
    return rules
