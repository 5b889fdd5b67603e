"""Counts of the results when many files or functions are rewritten, such as how many stay unchanged."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class VariantCounts:
    """Counts of the results when many files or functions are rewritten.

    A variant is the rewritten code of one file or function. To check a variant, the variant and the original
    code are run on the same inputs. The check also runs mutants, which are variants with a deliberate
    mistake. They show whether the inputs can reveal a mistake.

    Attributes:
        status: The number of variants with each status: "rewritten"; "unchanged"; "unparsed", if the original
            has a syntax error; or "refuted", if the check shows that the variant behaves differently.
        rewritten: For each rule, the number of places that it rewrote.
        skipped: For each rule, the number of places that it could not rewrite safely.
        renamed: The old names that were replaced in any variant.
        verdicts: The number of variants with each result of the check, such as "proven".
        mutants: Two numbers: how many mutants were run, and how many of them behaved differently from the
            original.
    """

    status: Counter[str] = field(default_factory=Counter)
    rewritten: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    renamed: set[str] = field(default_factory=set)
    verdicts: Counter[str] = field(default_factory=Counter)
    mutants: tuple[int, int] = (0, 0)

    def add(self, row: dict[str, Any]) -> None:
        """Update all counts with one more variant (piece of rewritten code).

        Args:
            row: The dict that describes the variant, as `vary_items`, `vary_files` or `prove_variants` yields
                it.
        """
        self.status[row["status"]] += 1
        self.renamed.update(row.get("names", ()))
        self.rewritten.update(row.get("counts", {}))
        self.skipped.update(place["rule"] for place in row.get("skipped", ()))
        proof = row.get("proof", {})
        self.verdicts.update([proof["verdict"]] if proof else [])
        run, killed = self.mutants
        self.mutants = run + proof.get("mutants", 0), killed + proof.get("killed_mutants", 0)
