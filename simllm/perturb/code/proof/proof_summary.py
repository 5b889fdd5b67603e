"""The summary of many proofs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from simllm.perturb.code.proof.proof_case import VERDICTS, Proof


@dataclass
class ProofSummary:
    """Counts of verdicts, and the power of the inputs.

    Attributes:
        verdicts: The number of proofs with each verdict.
        reasons: For the verdicts "compiled" and "parsed", the number of proofs with each reason.
        inputs: The number of inputs on which proven variants agree, in sum.
        twins: The number of wrong twins that were run.
        refuted_twins: The number of wrong twins that were refuted.
    """

    verdicts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))
    reasons: Counter[str] = field(default_factory=Counter)
    inputs: int = 0
    twins: int = 0
    refuted_twins: int = 0

    def add(self, proof: Proof) -> None:
        """Count a proof."""
        self.verdicts[proof.verdict] += 1
        if proof.verdict in ("compiled", "parsed"):
            self.reasons[proof.reason] += 1
        if proof.verdict == "proven":
            self.inputs += proof.inputs
        self.twins += proof.twins
        self.refuted_twins += proof.refuted_twins

    @property
    def power(self) -> float | None:
        """The share of wrong twins that the inputs refute; None without twins."""
        return self.refuted_twins / self.twins if self.twins else None
