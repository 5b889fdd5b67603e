"""Comparison of rewritten code (variants) with the original code by running both.

The outcome of a comparison is called a proof, even if the variant turns out to behave differently.
"""

from simllm.perturb.code.proof.command_proof import prove_by_command
from simllm.perturb.code.proof.differential_testing import prove
from simllm.perturb.code.proof.proof_case import ProofCase
from simllm.perturb.code.proof.proof_summary import ProofSummary
from simllm.perturb.code.proof.proof_verdict import VERDICTS, Counterexample, Proof

__all__ = ["VERDICTS", "Counterexample", "Proof", "ProofCase", "ProofSummary", "prove", "prove_by_command"]
