"""Rules that find documented functions in TypeScript code: the JavaScript rules with TypeScript grammars."""

from simllm.code.languages.javascript import language

# With JSX, a cast `<T>x` would be an element. Therefore the grammar without JSX comes first.
LANGUAGE = language(
    ("tree_sitter_typescript", "language_typescript"), ("tree_sitter_typescript", "language_tsx")
)
