"""Counts of the results when many files or functions are rewritten."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class VariantCounts:
    """Counts of the results when many files or functions are rewritten and perhaps checked by running them.

    Attributes:
        status: Variants by status: "rewritten", "unchanged", "unparsed" (the source has a syntax error) or
            "refuted" (the check shows different behaviour).
        rewritten: Rewritten places by rule.
        skipped: Places by rule that could not be rewritten safely.
        renamed: The old names that were replaced in any variant.
        verdicts: Variants by result of the check, such as "proven".
        mutants: How many mutants (variants with a deliberate mistake) were run, and how many of them behaved
            differently, which shows that the inputs can reveal a mistake.
    """

    status: Counter[str] = field(default_factory=Counter)
    rewritten: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    renamed: set[str] = field(default_factory=set)
    verdicts: Counter[str] = field(default_factory=Counter)
    mutants: tuple[int, int] = (0, 0)

    def add(self, row: dict[str, Any]) -> None:
        """Count one more row, as `vary_items`, `vary_files` or `prove_variants` yields it."""
        self.status[row["status"]] += 1
        self.renamed.update(row.get("names", ()))
        self.rewritten.update(row.get("counts", {}))
        self.skipped.update(place["rule"] for place in row.get("skipped", ()))
        proof = row.get("proof", {})
        self.verdicts.update([proof["verdict"]] if proof else [])
        run, killed = self.mutants
        self.mutants = run + proof.get("mutants", 0), killed + proof.get("killed_mutants", 0)
