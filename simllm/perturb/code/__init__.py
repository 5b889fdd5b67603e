"""Rewrites of Java and Python code that keep its behaviour.

They follow CodeCocoon (M. de Koning, "Metamorphic Testing for LLM-based Code Repair", TU Delft, 2025), but
rewrite a place only where the language guarantees that nothing changes.
"""

from simllm.perturb.code.rewriting import DEFAULT_RULES, Rewrite, Skipped, rename_text, restore, rewrite

__all__ = ["DEFAULT_RULES", "Rewrite", "Skipped", "rename_text", "restore", "rewrite"]
