"""TypeScript: as JavaScript; with JSX where it does not parse without."""

from simllm.code.languages.javascript import language

LANGUAGE = language(
    ("tree_sitter_typescript", "language_typescript"), ("tree_sitter_typescript", "language_tsx")
)
