"""Comparison of rewritten code with the original by running both.

A *case* is a function in several versions, named *sides*: side 0 is the original, side 1 the *variant* (the
rewritten version), and higher sides are *mutants*, variants with a deliberate mistake. All sides are called
on the same inputs by a *harness*, a program in the sandbox. Good inputs reveal the mistake of a mutant, so
the share of revealed mutants (the *power*) measures the quality of the inputs. The outcome of a comparison
is called a *proof*, even if the variant turns out to behave differently.
"""

from simllm.perturb.code.proof.commands import prove_by_command
from simllm.perturb.code.proof.testing import prove
from simllm.perturb.code.proof.verdicts import VERDICTS, Counterexample, Proof, ProofCase, ProofSummary

__all__ = ["VERDICTS", "Counterexample", "Proof", "ProofCase", "ProofSummary", "prove", "prove_by_command"]
