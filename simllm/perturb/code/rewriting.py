"""Behaviour-preserving rewrites of Java and Python code."""

from __future__ import annotations

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from tree_sitter import Node

from simllm.errors import InputError
from simllm.perturb.code.code_unit import CodeUnit, RewriteRules, SkippedSite, Symbol
from simllm.perturb.code.new_names import Namer, namer_of
from simllm.perturb.code.source_edits import Edit, Piece, TextEdit, apply_edits, compose, line_map, text_edits

LANGUAGES = ("java", "python")
_RENAMES = {"rename-function": "function", "rename-parameter": "parameter", "rename-variable": "variable"}
DEFAULT_RULES = (
    *_RENAMES,
    "for-to-while",
    "nest-else-if",
    "reverse-if",
    "swap-relation",
    "swap-equals",
    "expand-increment",
)
OPTIONAL_RULES = ("remove-comments", "expand-compound", "add-braces", "dead-code")


@dataclass(frozen=True)
class Skipped:
    """A place in the code that a rewrite rule could not rewrite safely.

    Attributes:
        rule: The name of the rule.
        line: The line number, counted from 1. It refers to the text that the rule received, which earlier
            rules may have changed.
        reason: The reason for not rewriting the place.
    """

    rule: str
    line: int
    reason: str


@dataclass(frozen=True)
class Rewrite:
    """The result of rewriting a source: a variant with the same behaviour.

    Attributes:
        text: The text of the variant.
        edits: The edits that turn the source into the variant, ordered by position. Positions are counted in
            characters of the source.
        names: A mapping from each renamed name to its new name.
        counts: A mapping from the name of each applied rule to the number of places that the rule rewrote.
        skipped: The places that the rules could not rewrite safely, with the reasons.
        line_map: For each line of the variant, the number of the source line from which it comes, counted
            from 1; None for a line without code from the source.
    """

    text: str
    edits: list[TextEdit]
    names: dict[str, str]
    counts: dict[str, int]
    skipped: list[Skipped]
    line_map: list[int | None]


def rewrite(
    source: str,
    language: str,
    rules: Sequence[str] = DEFAULT_RULES,
    names: str | Mapping[str, str] | Namer = "lexicon",
    *,
    share: float = 1.0,
    seed: int = 0,
    is_file: bool = False,
) -> Rewrite:
    """Rewrite code so that it looks different and behaves the same.

    Args:
        source: A file, or a single function or constructor.
        language: The language: "java" or "python".
        rules: The names of the rules to apply, in this order. A rule rewrites only places where the language
            guarantees that the behaviour stays the same.
        names: The source of new names: "lexicon" (synonyms), "plain" (`v0`, `v1`, ...), a mapping from old to
            new names, or a function. The function gets a name and its kind ("function", "parameter" or
            "variable"), and returns proposals, best first.
        share: The probability, from 0 to 1, of rewriting a place that a rule can rewrite.
        seed: The seed for choosing the places at random if `share` is below 1.
        is_file: Whether the source is a file. If a file holds a single Python function, other files may use
            the names of the function and of its parameters, so these names stay.

    Returns:
        The rewritten code, with a record of the changes.

    Raises:
        InputError: The language or a rule is unknown, `rules` is empty, `share` is out of range, or the
            source has a syntax error or is nested too deeply. The message about an error in the source begins
            with `line N: `.
    """
    check_rules(rules, share)
    rewriting = _Rewriting(source, find_rules(language), namer_of(names), share, random.Random(seed), is_file)
    try:
        return rewriting.run(rules)
    except RecursionError:
        raise InputError("line 1: the code is nested too deeply") from None


def check_rules(rules: Sequence[str], share: float) -> None:
    """Check the settings of a rewrite.

    Args:
        rules: The names of the rules to apply.
        share: The probability of rewriting a place that a rule can rewrite.

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


def rename_text(text: str, names: Mapping[str, str]) -> str:
    """Replace old names by new names in a text, such as a stack trace. Only whole words are replaced.

    Args:
        text: The text.
        names: A mapping from old to new names.
    """
    if not names:
        return text
    words = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<![\w$])(?:{words})(?![\w$])", lambda found: names[found[0]], text)


def restore(text: str, names: Mapping[str, str]) -> str:
    """Replace new names by the old ones in a text about rewritten code, such as a patch.

    Every occurrence of a new name can be replaced, because no new name occurs in the original source.

    Args:
        text: The text, which contains new names.
        names: A mapping from old to new names, as in `Rewrite.names`.
    """
    return rename_text(text, {new: old for old, new in names.items()})


class _Rewriting:
    """The state of one call of the function `rewrite`: the settings, and the results so far.

    The results are the new names, the number of rewritten places for each rule, and the skipped places.
    """

    def __init__(
        self,
        source: str,
        rules: RewriteRules,
        namer: Namer,
        share: float,
        choice: random.Random,
        is_file: bool,
    ) -> None:
        try:
            self._source = source.encode()
        except UnicodeEncodeError as error:
            line = source.count("\n", 0, error.start) + 1
            raise InputError(f"line {line}: the code is not valid UTF-8") from None
        self._rules = rules
        self._namer = namer
        self._share = share
        self._choice = choice
        self._is_file = is_file
        self._words = _words(source)  # later also the words that rules have added
        self._names: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._skipped: list[Skipped] = []

    def run(self, rules: Sequence[str]) -> Rewrite:
        """Apply rules in the given order, and return the rewritten code."""
        text, pieces = self._source, [Piece(self._source, 0)]
        unit = self._rules.parse(text, self._is_file)
        for rule in rules:
            edits = list(self._rename(unit, rule) if rule in _RENAMES else self._restructure(unit, rule))
            if edits:
                pieces = compose(pieces, _without_frame(apply_edits(unit.text, edits), unit))
                text = b"".join(piece.text for piece in pieces)
                unit = self._rules.parse(text, self._is_file)
        return Rewrite(
            text.decode(),
            text_edits(self._source, pieces),
            self._names,
            {rule: self._counts[rule] for rule in rules},
            self._skipped,
            line_map(self._source, pieces),
        )

    def _restructure(self, unit: CodeUnit, rule: str) -> Iterator[Edit]:
        """Apply a rule that changes the structure of code, such as "reverse-if".

        Args:
            unit: The parsed code.
            rule: The name of the rule.

        Yields:
            The edits of the places that are rewritten. Places that cannot be rewritten safely are added to
            the list of skipped places.
        """
        if rule not in self._rules.structural:
            return  # Python has no braces to add
        for site in self._rules.structural[rule](unit):
            if isinstance(site, SkippedSite):
                self._skip(unit, rule, site.node, site.reason)
            elif self._is_chosen(rule):
                yield from site.edits

    def _rename(self, unit: CodeUnit, rule: str) -> Iterator[Edit]:
        """Apply a rule that renames functions, parameters or variables.

        Args:
            unit: The parsed code.
            rule: The name of the rule, such as "rename-function".

        Yields:
            The edits that replace the old names by the new ones. Names that cannot be replaced are added to
            the list of skipped places.
        """
        self._words |= _words(unit.text.decode())
        for symbol in self._rules.symbols(unit):
            if symbol.kind != _RENAMES[rule]:
                continue
            if isinstance(symbol, SkippedSite):
                self._skip(unit, rule, symbol.node, symbol.reason)
            elif new := self._new_name(symbol):
                if self._is_chosen(rule):
                    self._names[symbol.name] = new
                    yield from (Edit(*use, (new.encode(),)) for use in symbol.uses)
            else:
                self._skip(unit, rule, symbol.node, f"there is no new name for {symbol.name}")

    def _new_name(self, symbol: Symbol) -> str | None:
        """Return the new name of a function, parameter or variable; None if no proposed name can be used.

        All symbols with the same old name get the same new name, and no two old names share a new name. A new
        name does not occur in the source, not even in comments and strings. The old names can therefore be
        restored.
        """
        if symbol.name in self._names:
            return self._names[symbol.name]
        used = self._words | self._rules.reserved | set(self._names.values())
        proposals = self._namer(symbol.name, symbol.kind)
        return next((name for name in proposals if _is_name(name) and name not in used), None)

    def _is_chosen(self, rule: str) -> bool:
        """Decide at random whether a rule rewrites a place in the code.

        If so, the number of places that the rule has rewritten is increased by 1.
        """
        chosen = self._share == 1 or self._choice.random() < self._share
        self._counts[rule] += chosen
        return chosen

    def _skip(self, unit: CodeUnit, rule: str, node: Node, reason: str) -> None:
        """Record a place that a rule does not rewrite, with the reason."""
        self._skipped.append(Skipped(rule, unit.line_of(node), reason))


def _words(text: str) -> set[str]:
    """Return the words of a text, and also their NFKC normal forms. New names must differ from all of them.

    Python treats two identifiers with the same NFKC normal form as equal.
    """
    return set(re.findall(r"[\w$]+", f"{text} {unicodedata.normalize('NFKC', text)}"))


def _is_name(text: str) -> bool:
    """Return whether a proposed name can be used as an identifier in Java and in Python.

    Names that Python changes are rejected: names that are not in NFKC normal form, and names that begin with
    `__`, to which Python adds the name of the class around them.
    """
    is_plain = unicodedata.normalize("NFKC", text) == text and not text.startswith("__")
    return is_plain and text.isidentifier()


def _without_frame(pieces: list[Piece], unit: CodeUnit) -> list[Piece]:
    """Remove the frame from an edited text.

    The frame is the lines that the parser puts around a single function, such as `class Unit {` and `}`.

    Args:
        pieces: The edited text with the frame, as a list of pieces.
        unit: The parsed code before the edits.

    Returns:
        The pieces of the edited text without the frame. The `start` of each piece counts from the beginning
        of the source, and no longer from the beginning of the frame.
    """
    before, after = unit.source.start, len(unit.text) - unit.source.end
    if before:
        pieces = [Piece(pieces[0].text[before:], before), *pieces[1:]]
    if after:
        last = pieces[-1]
        pieces = [*pieces[:-1], Piece(last.text[: len(last.text) - after], last.start)]
    return [Piece(text, None if start is None else start - before) for text, start in pieces]
