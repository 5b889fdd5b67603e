"""Extraction of the code from a model's reply, which may have text and Markdown around it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from tree_sitter import Node

from simllm.code.languages.language import Language
from simllm.code.languages.language_registry import find_language

# Labels of code fences besides the names of the languages.
_LABELS = {
    "c++": "cpp",
    "cc": "cpp",
    "cxx": "cpp",
    "golang": "go",
    "js": "javascript",
    "jsx": "javascript",
    "py": "python",
    "rb": "ruby",
    "ts": "typescript",
    "tsx": "typescript",
}
_DEFINITIONS = frozenset(
    {
        "annotation_type_declaration",
        "class",
        "class_declaration",
        "class_definition",
        "class_specifier",
        "constructor_declaration",
        "decorated_definition",
        "enum_declaration",
        "export_statement",
        "function_declaration",
        "function_definition",
        "generator_function_declaration",
        "interface_declaration",
        "method",
        "method_declaration",
        "method_definition",
        "module",
        "namespace_definition",
        "record_declaration",
        "singleton_method",
        "struct_specifier",
        "template_declaration",
        "trait_declaration",
        "type_declaration",
    }
)
# Tags such as <answer> do not begin HTML; otherwise, a fence in the next line would belong to them. Links and
# emphasis inside of paragraphs do not matter, and take long in hostile replies.
_MARKDOWN = MarkdownIt().disable(["html_block", "inline"])
_MOST_PARSED = 1_000_000  # characters; the search for the longest run of lines that parses stops after them


def code_of_reply(reply: str, language: str, is_program: bool = False) -> str | None:
    """Find the code in a language model's reply.

    If the reply has Markdown code blocks between fences (```), the code is the block with the most lines.
    Blocks whose label names another language are ignored. If the reply has no fences, the first of these
    rules that fits is used:

    - If the whole reply parses without a syntax error, the whole reply is the code.
    - If `is_program` is true, the result is None.
    - If the reply has definitions of functions or classes, the code is the part of the reply from the first
      to the last definition.
    - Otherwise, definitions are searched in the same way in a part of the reply: the longest run of
      consecutive lines that parses without a syntax error.

    Args:
        reply: The reply, in Markdown.
        language: The language of the code, such as "java".
        is_program: Whether the code must be a whole program, not only a function or class.

    Returns:
        The code; None if the reply has no code.

    Raises:
        InputError: The language is not supported.
        TimeoutError: Parsing takes too long.
    """
    rules = find_language(language)
    fences = [token for token in _MARKDOWN.parse(reply) if token.type == "fence"]
    if fences:
        own = [token.content.removesuffix("\n") for token in fences if _label(token.info) in (language, "")]
        code = max(own, key=lambda text: text.count("\n"), default="")
        return code if code.strip() else None
    if not reply.strip():
        return None
    if _parses(reply, rules):
        return reply
    if is_program:
        return None
    return _definitions(reply, rules) or _definitions(_longest_parsed_run(reply, rules), rules)


def _label(info: str) -> str:
    """Return the language in the label of a code fence; "" for a fence without a label.

    Versions, attributes and file names are removed: "python3.11", "{.python}" and "python:main.py" all give
    "python".

    Args:
        info: The text after the opening marks of the fence.
    """
    word = re.split(r"[\s,:;]", info.strip("{}. \t").lower())[0].rstrip("0123456789.")
    return _LABELS.get(word, word)


def _parses(text: str, rules: Language) -> bool:
    return not rules.parse(text.encode(errors="replace")).has_error


def _definitions(text: str, rules: Language) -> str | None:
    """Return the part of a text from its first to its last function or class; both are included.

    The result is None if the text has no function and no class.
    """
    code = text.encode(errors="replace")
    found = list(_outermost_definitions(rules.parse(code)))
    if not found:
        return None
    start, end = found[0].start_byte, max(node.end_byte for node in found)
    lines = code[:start].decode().split("\n")
    first = [lines.pop()]
    if not first[0].strip():  # keep the indentation, and decorators that the parser took for errors
        while lines and lines[-1].lstrip().startswith("@"):
            first.insert(0, lines.pop())
        return "\n".join(first) + code[start:end].decode()
    return code[start:end].decode()


def _outermost_definitions(root: Node) -> Iterator[Node]:
    """Yield the nodes of functions and classes that are not inside other functions and classes."""
    stack = list(reversed(root.children))  # the root of a Python file is a "module", too
    while stack:
        node = stack.pop()
        if node.is_named and node.type in _DEFINITIONS:
            yield node
        else:
            stack += reversed(node.children)


def _longest_parsed_run(text: str, rules: Language) -> str:
    """Return the longest run of consecutive lines that parses without a syntax error.

    The length of a run is its number of lines. Long runs are tried before short ones, and runs of the same
    length from top to bottom. The whole text is not tried, because the caller knows that it does not parse.
    To limit the time, the search stops after `_MOST_PARSED` characters have been parsed.

    Returns:
        The lines, joined by line feeds; "" if no run parses or if the search stopped before it found a run.
    """
    lines = text.splitlines()
    parsed = 0
    for length in range(len(lines) - 1, 0, -1):
        for start in range(len(lines) - length + 1):
            run = "\n".join(lines[start : start + length])
            if run.strip() and _parses(run, rules):
                return run
            parsed += len(run)
            if parsed > _MOST_PARSED:
                return ""
    return ""
