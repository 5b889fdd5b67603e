"""The role of each identifier in Python code: for example, whether a variable is read or assigned."""

from __future__ import annotations

from bisect import bisect_left

from tree_sitter import Node

from simllm.perturb.code.python.parsing import captures
from simllm.perturb.code.units import CodeUnit

# The roles that give a variable a value.
BINDING = frozenset({"bind", "function", "class", "parameter", "rest", "import", "star"})
# If an identifier has several roles, the last one in this order counts. Without a role, it is read.
_ORDER = ("bind", "function", "class", "parameter", "rest", "import", "declare", "delete", "attribute")
_PATTERNS = """
(identifier) @name

(assignment left: (identifier) @bind)
(augmented_assignment left: (identifier) @bind)
(for_statement left: (identifier) @bind)
(for_in_clause left: (identifier) @bind)
(pattern_list (identifier) @bind)
(tuple_pattern (identifier) @bind)
(list_pattern (identifier) @bind)
(list_splat_pattern (identifier) @bind)
(named_expression name: (identifier) @bind)
(type_alias_statement left: (type (identifier) @bind))
(as_pattern_target (identifier) @bind)
(as_pattern_target [(tuple) (list) (parenthesized_expression)] @bind-inside)

(case_pattern (dotted_name . (identifier) @bind .))
(union_pattern (dotted_name . (identifier) @bind .))
(keyword_pattern (dotted_name . (identifier) @bind .))
(dict_pattern (dotted_name . (identifier) @bind .))
(splat_pattern (identifier) @bind)
(case_pattern (as_pattern (identifier) @bind))

(function_definition name: (identifier) @function)
(class_definition name: (identifier) @class)

(parameters (identifier) @parameter)
(lambda_parameters (identifier) @parameter)
(default_parameter name: (identifier) @parameter)
(typed_parameter . (identifier) @parameter)
(typed_default_parameter name: (identifier) @parameter)
(parameters [(list_splat_pattern (identifier) @rest) (dictionary_splat_pattern (identifier) @rest)])
(lambda_parameters [(list_splat_pattern (identifier) @rest) (dictionary_splat_pattern (identifier) @rest)])
(typed_parameter [(list_splat_pattern (identifier) @rest) (dictionary_splat_pattern (identifier) @rest)])

(import_statement name: (dotted_name . (identifier) @import))
(import_from_statement name: (dotted_name (identifier) @import))
(aliased_import alias: (identifier) @import)

(global_statement (identifier) @declare)
(nonlocal_statement (identifier) @declare)

(delete_statement (identifier) @delete)
(delete_statement (expression_list (identifier) @delete))
(delete_statement [(tuple) (list) (parenthesized_expression)] @delete-inside)
(delete_statement (expression_list [(tuple) (list) (parenthesized_expression)] @delete-inside))

(attribute attribute: (identifier) @attribute)
(member_type (identifier) @attribute .)
(keyword_argument name: (identifier) @attribute)
(keyword_pattern . (identifier) @attribute)
(dotted_name (_) . (identifier) @attribute)
(aliased_import name: (dotted_name (identifier) @attribute))
(import_from_statement module_name: (dotted_name (identifier) @attribute))
(import_from_statement module_name: (relative_import (dotted_name (identifier) @attribute)))
(future_import_statement (dotted_name (identifier) @attribute))
"""


def identifier_roles(unit: CodeUnit) -> list[tuple[Node, str]]:
    """Return all identifiers in the order of the source, each with its role.

    - "read": a variable that is read
    - "bind": a variable that is assigned, or the target of a loop or pattern
    - "function", "class", "parameter", "import": the name in a declaration of this kind
    - "rest": a parameter such as `*rest` or `**rest`
    - "declare": a name after `global` or `nonlocal`
    - "delete": a variable after `del`
    - "attribute": not a variable, but an attribute, a keyword of a call, or a part of a module's name
    """
    found = captures(unit, _PATTERNS)
    names = found.get("name", [])
    starts = [node.start_byte for node in names]
    roles: dict[int, str] = {}
    for role in _ORDER:
        roles.update((node.start_byte, role) for node in found.get(role, []))
        for outer in found.get(f"{role}-inside", []):
            inside = starts[bisect_left(starts, outer.start_byte) : bisect_left(starts, outer.end_byte)]
            roles.update((start, role) for start in inside)
    return [(node, roles.get(node.start_byte, "read")) for node in names]
