"""The rewriting of one source: rules are applied in order, and their edits are composed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from simllm.errors import InputError
from simllm.perturb.code.edits import Edit, Piece, TextEdit, apply_edits, compose, line_map, text_edits
from simllm.perturb.code.names import Namer, choose_name, namer_of, words_of
from simllm.perturb.code.rules import DEFAULT_RULES, RENAMES, check_rules, find_rules
from simllm.perturb.code.units import CodeUnit, RewriteRules, SkippedSite, Symbol, span_of


@dataclass(frozen=True)
class Skipped:
    """A place in the code that a rule could not rewrite safely.

    Attributes:
        line: Counted from 1 in the text that the rule received, which earlier rules may have changed.
    """

    rule: str
    line: int
    reason: str


@dataclass(frozen=True)
class Rewrite:
    """A variant of a source, with a record of the changes.

    Attributes:
        text: The variant.
        edits: The edits from the source to the variant, ordered by position; positions count characters.
        names: The new name of each renamed symbol, by old name.
        counts: The number of places that each applied rule rewrote.
        line_map: For each line of the variant, its source line, counted from 1; None if it has no source
            code.
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
    around: str = "",
) -> Rewrite:
    """Rewrite a file, function or constructor, so that it looks different and behaves the same.

    The arguments are those of `RewritePlan`; `namer_of` explains `names`. `InputError` is raised for an
    unknown language or rule, and for a source with a syntax error or too deep nesting (its message begins
    with `line N: `).
    """
    check_rules(rules, share)
    rewriting = _Rewriting(
        source, find_rules(language), namer_of(names), share, random.Random(seed), is_file, around
    )
    try:
        return rewriting.run(rules)
    except RecursionError:
        raise InputError("line 1: the code is nested too deeply") from None


def find_symbols(source: str, language: str, around: str = "") -> list[Symbol]:
    """Return the symbols of a source that can be renamed safely; raise `InputError` as `rewrite` does."""
    rules = find_rules(language)
    try:
        unit = rules.parse(source.encode(), False, around.encode())
        return [
            symbol
            for symbol in rules.symbols(unit)
            if isinstance(symbol, Symbol) and all(map(unit.holds, symbol.uses))
        ]
    except RecursionError:
        raise InputError("line 1: the code is nested too deeply") from None
    except UnicodeEncodeError:
        raise InputError("line 1: the code is not valid UTF-8") from None


class _Rewriting:
    """The state of one call of `rewrite`: the settings, and the results so far."""

    def __init__(
        self,
        source: str,
        rules: RewriteRules,
        namer: Namer,
        share: float,
        choice: random.Random,
        is_file: bool,
        around: str,
    ) -> None:
        try:
            self._source = source.encode()
        except UnicodeEncodeError as error:
            line = source.count("\n", 0, error.start) + 1
            raise InputError(f"line {line}: the code is not valid UTF-8") from None
        try:
            self._around = around.encode()
        except UnicodeEncodeError:
            raise InputError("line 1: the code under around is not valid UTF-8") from None
        self._rules = rules
        self._namer = namer
        self._share = share
        self._choice = choice
        self._is_file = is_file
        # Grows by the words that rules add. A new name must not occur in the source, not even in comments and
        # strings, so that the old names can be restored by a search for words.
        self._words = words_of(source)
        self._names: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._skipped: list[Skipped] = []

    def run(self, rules: Sequence[str]) -> Rewrite:
        """Apply rules in the given order, and return the variant."""
        text, pieces = self._source, [Piece(self._source, 0)]
        unit = self._rules.parse(text, self._is_file, self._around)
        for rule in rules:
            edits = list(self._rename(unit, rule) if rule in RENAMES else self._restructure(unit, rule))
            if edits:
                pieces = compose(pieces, _without_frame(apply_edits(unit.text, edits), unit))
                text = b"".join(piece.text for piece in pieces)
                unit = self._rules.parse(text, self._is_file, self._around)
        return Rewrite(
            text.decode(),
            text_edits(self._source, pieces),
            self._names,
            {rule: self._counts[rule] for rule in rules},
            self._skipped,
            line_map(self._source, pieces),
        )

    def _restructure(self, unit: CodeUnit, rule: str) -> Iterator[Edit]:
        """Yield the edits of a structural rule, and record its skipped sites."""
        if rule not in self._rules.structural:
            # Python, for example, has no braces to add.
            return
        for site in self._rules.structural[rule](unit):
            if not unit.holds(span_of(site.node)):
                # A place in the code around the source.
                continue
            if isinstance(site, SkippedSite):
                self._skip(unit, rule, site.node, site.reason)
            elif self._is_chosen(rule):
                yield from site.edits

    def _rename(self, unit: CodeUnit, rule: str) -> Iterator[Edit]:
        """Yield the edits of a renaming rule, and record the symbols that cannot be renamed."""
        self._words |= words_of(unit.text.decode())
        for symbol in self._rules.symbols(unit):
            if symbol.kind != RENAMES[rule] or not unit.holds(span_of(symbol.node)):
                continue
            if isinstance(symbol, SkippedSite):
                self._skip(unit, rule, symbol.node, symbol.reason)
                continue
            if not all(map(unit.holds, symbol.uses)):
                self._skip(unit, rule, symbol.node, "the code around it uses the name")
                continue
            new, reason = self._new_name(symbol, unit.language)
            if new is None:
                self._skip(unit, rule, symbol.node, reason)
            elif self._is_chosen(rule):
                self._names[symbol.name] = new
                yield from (Edit(*use, (new.encode(),)) for use in symbol.uses)

    def _new_name(self, symbol: Symbol, language: str) -> tuple[str | None, str]:
        """Return the new name of a symbol and ""; or None and the reason why there is none."""
        # Two symbols with one old name get one new name, and no two old names share a new name. This makes
        # the names a mapping that can be inverted.
        if symbol.name in self._names:
            return self._names[symbol.name], ""
        given = {new: old for old, new in self._names.items()}

        def why_taken(new: str) -> str | None:
            if new in self._rules.reserved:
                return f"is reserved in {language.capitalize()}"
            if new in given:
                return f"is taken: it is the new name of {given[new]}"
            return "is taken: the word occurs in the code" if new in self._words else None

        return choose_name(symbol, self._namer, why_taken)

    def _is_chosen(self, rule: str) -> bool:
        """Decide at random whether a rule rewrites a place, and count the rewritten places."""
        # Without a draw for a share of 1, the seed does not matter there.
        chosen = self._share == 1 or self._choice.random() < self._share
        self._counts[rule] += chosen
        return chosen

    def _skip(self, unit: CodeUnit, rule: str, node: Node, reason: str) -> None:
        self._skipped.append(Skipped(rule, unit.line_of(node), reason))


def _without_frame(pieces: list[Piece], unit: CodeUnit) -> list[Piece]:
    """Remove the frame from an edited text, and count positions from the beginning of the source."""
    before, after = unit.source.start, len(unit.text) - unit.source.end
    if before:
        pieces = [Piece(pieces[0].text[before:], before), *pieces[1:]]
    if after:
        last = pieces[-1]
        pieces = [*pieces[:-1], Piece(last.text[: len(last.text) - after], last.start)]
    return [Piece(text, None if start is None else start - before) for text, start in pieces]
