"""Behaviour-preserving rewrites of Java and Python code."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from simllm.errors import InputError
from simllm.perturb.code.code_unit import CodeUnit, RewriteRules, SkippedSite, Symbol
from simllm.perturb.code.default_rules import DEFAULT_RULES, RENAMES, check_rules, find_rules
from simllm.perturb.code.new_names import Namer, choose_name, namer_of, words_of
from simllm.perturb.code.source_edits import Edit, Piece, TextEdit, apply_edits, compose, line_map, text_edits


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
        is_file: True: the source is a whole file. False: the source may also be a single function or
            constructor. A single function may get a new name. A whole file keeps each name that other files
            may use.

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
        self._words = words_of(source)  # later also the words that rules have added
        self._names: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._skipped: list[Skipped] = []

    def run(self, rules: Sequence[str]) -> Rewrite:
        """Apply rules in the given order, and return the rewritten code."""
        text, pieces = self._source, [Piece(self._source, 0)]
        unit = self._rules.parse(text, self._is_file)
        for rule in rules:
            edits = list(self._rename(unit, rule) if rule in RENAMES else self._restructure(unit, rule))
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
        self._words |= words_of(unit.text.decode())
        for symbol in self._rules.symbols(unit):
            if symbol.kind != RENAMES[rule]:
                continue
            if isinstance(symbol, SkippedSite):
                self._skip(unit, rule, symbol.node, symbol.reason)
                continue
            new, reason = self._new_name(symbol, unit.language)
            if new is None:
                self._skip(unit, rule, symbol.node, reason)
            elif self._is_chosen(rule):
                self._names[symbol.name] = new
                yield from (Edit(*use, (new.encode(),)) for use in symbol.uses)

    def _new_name(self, symbol: Symbol, language: str) -> tuple[str | None, str]:
        """Return the new name of a function, parameter or variable; None and the reason if there is none.

        All symbols with the same old name get the same new name, and no two old names share a new name. A new
        name does not occur in the source, not even in comments and strings. The old names can therefore be
        restored.
        """
        if symbol.name in self._names:
            return self._names[symbol.name], ""
        given = {new: old for old, new in self._names.items()}

        def why_taken(new: str) -> str | None:
            if new in self._rules.reserved:
                return f"is reserved in {language.capitalize()}"
            if new in given:
                return f"is taken: it is the new name of {given[new]}"
            return "is taken: the word occurs in the code" if new in self._words else None

        return choose_name(symbol.name, symbol.kind, self._namer, why_taken)

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


def _without_frame(pieces: list[Piece], unit: CodeUnit) -> list[Piece]:
    """Remove the frame from an edited text.

    The frame is the lines that the parser puts around a single function, such as `class Unit {` and `}`. A
    piece of the edited text is either new, or copied from the code before the edits. The `start` of a copied
    piece is its byte position in that code. The `start` of a new piece is None.

    Args:
        pieces: The pieces of the edited text with the frame. Positions are counted from the beginning of the
            frame.
        unit: The parsed code before the edits, with the frame.

    Returns:
        The pieces of the edited text without the frame. Positions are counted from the beginning of the
        source, which follows the first lines of the frame.
    """
    before, after = unit.source.start, len(unit.text) - unit.source.end
    if before:
        pieces = [Piece(pieces[0].text[before:], before), *pieces[1:]]
    if after:
        last = pieces[-1]
        pieces = [*pieces[:-1], Piece(last.text[: len(last.text) - after], last.start)]
    return [Piece(text, None if start is None else start - before) for text, start in pieces]
