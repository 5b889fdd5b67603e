"""Rules that find documented functions in TypeScript code: the JavaScript rules with TypeScript grammars.

The grammar without JSX is tried first. If it finds syntax errors in the code, the grammar with JSX is tried.
"""

from simllm.code.languages.javascript import language

LANGUAGE = language(
    ("tree_sitter_typescript", "language_typescript"), ("tree_sitter_typescript", "language_tsx")
)
