"""The table of all rewrite rules for Java."""

from __future__ import annotations

from simllm.perturb.code.code_unit import RewriteRules
from simllm.perturb.code.java.java_braces import add_braces
from simllm.perturb.code.java.java_comment_removal import remove_comments
from simllm.perturb.code.java.java_comparisons import swap_equals, swap_relation
from simllm.perturb.code.java.java_compound_assignments import expand_compound
from simllm.perturb.code.java.java_conditions import nest_else_if, reverse_if
from simllm.perturb.code.java.java_dead_code import dead_code
from simllm.perturb.code.java.java_increments import expand_increment
from simllm.perturb.code.java.java_loops import for_to_while
from simllm.perturb.code.java.java_parsing import parse
from simllm.perturb.code.java.java_renaming import NEVER, RESERVED, symbols

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
