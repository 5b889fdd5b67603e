"""Rules that find documented TypeScript functions: the rules for JavaScript, with other grammars.

If code has syntax errors in the grammar without JSX, the grammar with JSX is tried.
"""

from simllm.code.languages.javascript import language

LANGUAGE = language(
    ("tree_sitter_typescript", "language_typescript"), ("tree_sitter_typescript", "language_tsx")
)
