"""TypeScript: the rules of JavaScript with other grammars. If code has syntax errors, JSX is tried."""

from simllm.code.languages.javascript import language

LANGUAGE = language(
    ("tree_sitter_typescript", "language_typescript"), ("tree_sitter_typescript", "language_tsx")
)
