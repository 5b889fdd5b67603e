"""Rewrites of Java and Python code that keep its behaviour.

The set of rewrites follows the tool CodeCocoon (M. de Koning, "Metamorphic Testing for LLM-based Code
Repair", TU Delft, 2025). Unlike that tool, this package makes a rewrite only if the language guarantees that
the program behaves the same afterwards.
"""

from simllm.perturb.code.default_rules import DEFAULT_RULES
from simllm.perturb.code.restore_names import rename_text, restore, restore_functions
from simllm.perturb.code.rewriting import Rewrite, Skipped, rewrite

__all__ = ["DEFAULT_RULES", "Rewrite", "Skipped", "rename_text", "restore", "restore_functions", "rewrite"]
