"""The table of all rewrite rules for Python."""

from __future__ import annotations

import builtins
import keyword

from simllm.perturb.code.code_unit import RewriteRules
from simllm.perturb.code.python.python_augmented_assignments import expand_compound, expand_increment
from simllm.perturb.code.python.python_comment_removal import remove_comments
from simllm.perturb.code.python.python_comparisons import swap_equals, swap_relation
from simllm.perturb.code.python.python_conditions import nest_else_if, reverse_if
from simllm.perturb.code.python.python_dead_code import add_dead_code
from simllm.perturb.code.python.python_loops import for_to_while
from simllm.perturb.code.python.python_parsing import parse
from simllm.perturb.code.python.python_renaming import symbols

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
        "dead-code": add_dead_code,
    },
    symbols=symbols,
    reserved=frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | frozenset(dir(builtins)),
)
