"""Rewrites of Java code that keep its behaviour.

The types of syntax nodes, such as "if_statement", and the roles of children, such as "condition", are those
of the grammar tree-sitter-java. An analysis that cannot decide errs on the side of no rewrite: it returns
None, an empty type, or the answer that forbids the rewrite. Code is assumed to compile.
"""
