"""Counts of how many rewritten functions behave like their originals.

A function and its rewritten variant are compared by running both on the same inputs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from simllm.perturb.code.proof.proof_verdict import VERDICTS, Proof


@dataclass
class ProofSummary:
    """Counts over many proofs, such as the number of proofs with each verdict.

    A proof is the outcome of running a function and its variant (a rewritten version), and comparing them.

    Attributes:
        verdicts: The number of proofs with each verdict, such as "proven" or "refuted".
        reasons: The number of proofs with each reason, for the verdicts "unproven", "compiled" and "parsed".
        inputs: The total number of inputs on which functions and variants behaved the same, counted only in
            proofs with the verdict "proven" or "unproven".
        mutants: The total number of mutants (variants with a deliberate mistake) that were run.
        killed_mutants: The total number of mutants whose mistake the inputs revealed.
    """

    verdicts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))
    reasons: Counter[str] = field(default_factory=Counter)
    inputs: int = 0
    mutants: int = 0
    killed_mutants: int = 0

    def add(self, proof: Proof) -> None:
        """Update the counts with one proof.

        A proof is the outcome of running a function and its variant (a rewritten version), and comparing
        them.
        """
        self.verdicts[proof.verdict] += 1
        if proof.verdict in ("unproven", "compiled", "parsed"):
            self.reasons[proof.reason] += 1
        if proof.verdict in ("proven", "unproven"):
            self.inputs += proof.inputs
        self.mutants += proof.mutants
        self.killed_mutants += proof.killed_mutants

    @property
    def power(self) -> float | None:
        """The share of mutants (variants with a deliberate mistake) that the test inputs reveal.

        An input reveals a mutant if the original and the mutant behave differently on this input. The share
        is None if there are no mutants.
        """
        return self.killed_mutants / self.mutants if self.mutants else None
