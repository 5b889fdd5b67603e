"""Rewrites of Java and Python code that keep its behaviour.

The set of rewrites follows the tool CodeCocoon (M. de Koning, "Metamorphic Testing for LLM-based Code
Repair", TU Delft, 2025). Unlike that tool, this package makes a rewrite only if the language guarantees that
the program behaves the same afterwards.

Terms of this package:

- source and variant: code before and after all rewrites.
- item and row: an item is a dict with the `id`, `language` and `source` of a piece of code; a row is a dict
  that describes the variant of an item.
- unit: parsed code (`CodeUnit`), either a file or a single function. Java cannot parse a function alone, and
  Python cannot parse an indented one. The parser then adds lines around the function, such as `class Unit {`
  and `}`; these lines are the frame.
- rule: one kind of rewrite. A structural rule, such as "reverse-if", yields a site for each place that it can
  rewrite safely, and a skipped site, with the reason, for each place where the behaviour might change. A
  renaming rule, such as "rename-variable", replaces the names of symbols.
- symbol: a function, parameter or local variable. These three words are the kinds of symbols.
- namer: a function that takes a name and the kind of its symbol, and returns proposals, best first.
- edit, span and piece: an edit replaces a span (a range of bytes) by parts; a part is either new bytes or a
  span of the source, which is copied. The result of edits is a list of pieces. A piece is either new text, or
  text with its position in the source.

Positions are byte positions in the text of the unit, with the frame; ends are exclusive. Line numbers in
reasons and messages count from 1, without the frame.
"""

from simllm.perturb.code.restoring import rename_text, restore, restore_functions
from simllm.perturb.code.rewriting import Rewrite, Skipped, rewrite
from simllm.perturb.code.rules import DEFAULT_RULES

__all__ = ["DEFAULT_RULES", "Rewrite", "Skipped", "rename_text", "restore", "restore_functions", "rewrite"]
