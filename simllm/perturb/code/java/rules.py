"""The table of all rewrite rules for Java."""

from __future__ import annotations

from simllm.perturb.code.java.conditions import (
    add_braces,
    nest_else_if,
    reverse_if,
    swap_equals,
    swap_relation,
)
from simllm.perturb.code.java.loops import for_to_while
from simllm.perturb.code.java.parsing import parse
from simllm.perturb.code.java.renaming import NEVER, RESERVED, symbols
from simllm.perturb.code.java.statements import dead_code, expand_compound, expand_increment, remove_comments
from simllm.perturb.code.units import RewriteRules

RULES = RewriteRules(
    parse=parse,
    structural={
        "for-to-while": for_to_while,
        "nest-else-if": nest_else_if,
        "reverse-if": reverse_if,
        "swap-relation": swap_relation,
        "swap-equals": swap_equals,
        "expand-increment": expand_increment,
        "remove-comments": remove_comments,
        "expand-compound": expand_compound,
        "add-braces": add_braces,
        "dead-code": dead_code,
    },
    symbols=symbols,
    reserved=RESERVED | NEVER,
)
