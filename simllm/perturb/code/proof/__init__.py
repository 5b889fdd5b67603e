"""Comparison of rewritten code (variants) with the original code by running both.

The outcome of a comparison is called a proof, even if the variant turns out to behave differently.
"""

from simllm.perturb.code.proof.commands import prove_by_command
from simllm.perturb.code.proof.testing import prove
from simllm.perturb.code.proof.verdicts import VERDICTS, Counterexample, Proof, ProofCase, ProofSummary

__all__ = ["VERDICTS", "Counterexample", "Proof", "ProofCase", "ProofSummary", "prove", "prove_by_command"]
