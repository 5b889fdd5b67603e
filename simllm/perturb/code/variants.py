"""Variants of many sources: the plan by which they are rewritten, their items and rows, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import reading
from simllm.perturb.code.names import Namer, seeded, synonyms
from simllm.perturb.code.rewriting import Rewrite, rewrite
from simllm.perturb.code.rules import DEFAULT_RULES, LANGUAGES, check_rules

PROPOSED = "proposed_names"  # the field of an item with the names that a model proposes
MOST_VARIANTS = 1000  # of a source
_SHARE = 0.5  # of the places that further variants of a source rewrite
_MISSES = 16  # choices in a row that give no new text; then a source has no more variants


@dataclass(frozen=True)
class RewritePlan:
    """The settings with which many sources are rewritten; bad rules or a bad share raise `InputError`.

    Attributes:
        rules: The names of the rules, in the order in which they are applied.
        share: The probability, from 0 to 1, with which a rule rewrites each possible place.
        seed: The seed for choosing the places.
        is_file: Whether each source must be a whole file. A whole file keeps each name that other files may
            use.
        variants: The largest number of variants of a source, all with different texts.
    """

    rules: Sequence[str] = DEFAULT_RULES
    namer: Namer = synonyms
    share: float = 1.0
    seed: int = 0
    is_file: bool = False
    variants: int = 1

    def __post_init__(self) -> None:
        check_rules(self.rules, self.share)
        if not 1 <= self.variants <= MOST_VARIANTS:
            raise InputError(f"variants {self.variants}: expected a number from 1 to {MOST_VARIANTS:,}")

    def rewrite(self, source: str, language: str, around: str = "") -> Rewrite:
        """Rewrite a source; rules that do not exist for the language are ignored."""
        return rewrite(
            source,
            language,
            self.rules,
            self.namer,
            share=self.share,
            seed=self.seed,
            is_file=self.is_file,
            around=around,
        )

    def rewrite_differently(self, source: str, language: str, around: str = "") -> Iterator[Rewrite]:
        """Yield up to `variants` different variants of a source, the one of `rewrite` first.

        Further ones draw other names and rewrite a random part of the places. A source that has fewer
        variants yields fewer.
        """
        first = self.rewrite(source, language, around)
        yield first
        seen = {source, first.text}
        seed, misses = self.seed, _MISSES if first.text == source else 0
        # The source itself is among the texts that were seen.
        while len(seen) <= self.variants and misses < _MISSES:
            seed += 1
            share = self.share if self.share < 1 else _SHARE
            plan = replace(self, namer=seeded(self.namer, seed), share=share, seed=seed)
            found = plan.rewrite(source, language, around)
            if found.text in seen:
                misses += 1
            else:
                misses = 0
                seen.add(found.text)
                yield found

    def with_names(self, names: Mapping[str, str], proposed: Mapping[str, str] | None = None) -> RewritePlan:
        """Return this plan, but with the given new names for some old names.

        For other names, the proposed ones come first, and those of the plan follow.
        """
        proposals = proposed or {}
        if not names and not proposals:
            return self
        return replace(
            self,
            namer=lambda name, kind, values: (
                [names[name]]
                if name in names
                else chain(filter(None, [proposals.get(name)]), self.namer(name, kind, values))
            ),
        )

    def arms(self) -> Iterator[tuple[str | None, RewritePlan]]:
        """Yield (None, this plan), and then, for each rule, its name and a plan with this rule alone.

        Each plan is one arm of an experiment that shows the effect of each single rule.
        """
        yield None, self
        yield from ((rule, replace(self, rules=(rule,))) for rule in self.rules)


@dataclass
class VariantCounts:
    """Counts of the results when many files or functions are rewritten and perhaps checked by running them.

    Attributes:
        status: Variants by status: "rewritten", "unchanged", "unparsed" (the source has a syntax error) or
            "refuted" (the check shows different behaviour).
        rewritten: Rewritten places by rule.
        skipped: Places by rule that could not be rewritten safely.
        renamed: The old names that were replaced in any variant.
        numbers: Rewritten variants by their number among the variants of a source.
        verdicts: Variants by result of the check, such as "proven".
        mutants: How many mutants (variants with a deliberate mistake) were run, and how many of them behaved
            differently, which shows that the inputs can reveal a mistake.
    """

    status: Counter[str] = field(default_factory=Counter)
    rewritten: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    renamed: set[str] = field(default_factory=set)
    numbers: Counter[int] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    mutants: tuple[int, int] = (0, 0)

    def add(self, row: dict[str, Any]) -> None:
        """Count one more row, as `vary_items`, `vary_files` or `prove_variants` yields it."""
        self.status[row["status"]] += 1
        self.renamed.update(row.get("names", ()))
        if row["status"] in ("rewritten", "refuted"):
            self.numbers[row.get("variant", 0)] += 1
        self.rewritten.update(row.get("counts", {}))
        self.skipped.update(place["rule"] for place in row.get("skipped", ()))
        proof = row.get("proof", {})
        self.verdicts.update([proof["verdict"]] if proof else [])
        run, killed = self.mutants
        self.mutants = run + proof.get("mutants", 0), killed + proof.get("killed_mutants", 0)


_CARRIED = ("reference", "label", "nll", "group")  # the fields of an item that its variant keeps


def read_items(file: Path, language: str | None = None) -> Iterator[dict[str, Any]]:
    """Read items from a JSON-lines file, or from a `.json` file with one object that maps ids to code.

    `language` is the language of items without this field; a `.json` file needs it. Further fields are kept,
    and `where` is added, the position in the file for error messages. A missing field, an unknown language or
    a repeated id raises `InputError`.
    """
    seen: set[str] = set()
    rows = _read_object(file) if file.name.endswith(".json") else reading.objects(file)
    for where, row in rows:
        if language and "language" not in row:
            row["language"] = language
        for name in ("id", "language", "source"):
            reading.text_under(row, name, where)
        if row["id"] in seen:
            raise InputError(f"{where}: the id {row['id']!r} stands twice")
        # An item may bring its own new names, which come before those of the plan.
        names = row.get("names") or {}
        if not isinstance(names, dict) or not all(isinstance(new, str) for new in names.values()):
            raise InputError(f"{where}: expected an object of new names by old names under names")
        if row.get("around") is not None:
            reading.text_under(row, "around", where)
        if row["language"] not in LANGUAGES:
            raise InputError(f"{where}: expected the language java or python, not {row['language']!r}")
        seen.add(row["id"])
        yield {**row, "where": where}


def _read_object(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the position, for error messages, and the item of each entry of a JSON object."""
    text = "\n".join(line for _, line in reading.read_lines(file))
    for name, source in reading.parsed(text, str(file)).items():
        yield f"{file}, {name}", {"id": name, "source": source}


def vary_items(
    items: Iterable[dict[str, Any]], plan: RewritePlan, each_rule: bool = False
) -> Iterator[dict[str, Any]]:
    """Rewrite each item, and yield its row: fields of the item, a `status`, the attributes of `Rewrite`.

    With `each_rule`, an item also gets a variant for each rule alone, whose row has the rule's name under
    `arm`. If the plan asks for several variants, their rows are numbered under `variant`, from 0. The status
    is "rewritten", "unchanged" or "unparsed". An unparsed item has one row, with a `reason`.
    """
    for item in items:
        kept = {name: item[name] for name in ("id", "language", *_CARRIED) if name in item}
        code = item["source"], item["language"], item.get("around") or ""
        for arm, own in plan.arms() if each_rule else [(None, plan)]:
            row = kept | ({"arm": arm} if arm else {})
            try:
                for number, found in enumerate(
                    own.with_names(item.get("names") or {}, item.get(PROPOSED)).rewrite_differently(*code)
                ):
                    status = "unchanged" if found.text == item["source"] else "rewritten"
                    numbered = {"variant": number} if plan.variants > 1 else {}
                    # "parsed" is the weakest verdict: the variant has been parsed, but not run.
                    more = {"edits": [list(edit) for edit in found.edits], "proof": {"verdict": "parsed"}}
                    yield row | numbered | {"status": status, **asdict(found), **more}
            except InputError as error:
                # No other plan can parse the item either.
                yield row | {"status": "unparsed", "reason": str(error)}
                break
