"""The table of all rewrite rules for Python."""

from __future__ import annotations

import builtins
import keyword

from simllm.perturb.code.python.conditions import nest_else_if, reverse_if, swap_equals, swap_relation
from simllm.perturb.code.python.loops import for_to_while
from simllm.perturb.code.python.parsing import parse
from simllm.perturb.code.python.renaming import symbols
from simllm.perturb.code.python.statements import (
    dead_code,
    expand_compound,
    expand_increment,
    remove_comments,
)
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
        "dead-code": dead_code,
    },
    symbols=symbols,
    reserved=frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | frozenset(dir(builtins)),
)
