"""TypeScript: like JavaScript; the grammar with JSX is used if the other one finds errors."""

from simllm.code.languages.javascript import language

LANGUAGE = language(
    ("tree_sitter_typescript", "language_typescript"), ("tree_sitter_typescript", "language_tsx")
)
