"""The rules of each language: where comments stand, and which functions they document.

- Python: the docstring is the first statement of the function.
- Java, C++, JavaScript, PHP: a comment `/** ... */` documents the function after it. In C++, the function may
  be only declared; in JavaScript, it may be assigned to a name, as in `const f = () => 1`.
- TypeScript: the rules of JavaScript with other grammars.
- Go, Ruby: a comment documents the function directly after it. Methods of Go's interfaces count, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from inspect import cleandoc

from tree_sitter import Node

from simllm.code.languages.cursor import NodePath, path_to_type
from simllm.code.languages.language import (
    CommentPlace,
    Language,
    block_comments,
    field_text,
    line_comments,
    strip_block_marks,
    strip_line_marks,
    text,
)


def _begins(*types: str) -> Callable[[NodePath], NodePath | None]:
    """Return the rule that a declaration of one of these types begins with the token."""
    wanted = frozenset(types)
    return lambda path: path_to_type(path, wanted)


def _own_name(node: Node) -> str:
    return field_text(node, "name")


# A colon at the end of a line, then empty lines and comments, then a string. The string is optional, so that
# each byte of a file is matched only once.
_PYTHON_DOCSTRING = re.compile(
    rb""":[ \t]*(?:#[^\n]*)?(?:\n|\Z)(?:[ \t]*(?:#[^\n]*)?\n)*+[ \t]*"""
    rb"""([rRuU]?(?:(\"\"\"|''')(?s:.*?)(?:(?<!\\)\2|\Z)|"[^"\n]*"|'[^'\n]*'))?"""
)


def _python_places(code: bytes) -> Iterator[CommentPlace]:
    """Yield the places of the strings that may be docstrings: a colon at the end of a line comes before."""
    for match in _PYTHON_DOCSTRING.finditer(code):
        if match[1]:
            yield CommentPlace(match.start(1), match.end(1), match.start(1))


def _python_function(path: NodePath) -> NodePath | None:
    """Find the Python function to which a docstring belongs; None for another string."""
    start = path[-1].start_byte
    at = len(path) - 1
    while at > 0 and path[at].start_byte == start and path[at].type != "block":
        at -= 1
    if at > 0 and path[at].type == "block" and path[at - 1].type == "function_definition":
        return path[:at]
    return None


def _python_strip_marks(raw: str) -> str:
    """Remove the quotes and the common indentation from the source code of a Python docstring."""
    quoted = raw.lstrip("rRuU")
    inside = quoted.strip(quoted[:1])
    # Only escapes of quotes, backslashes and line breaks are resolved.
    if raw[:1] not in "rR":
        inside = re.sub(r"\\(\n|[\"'\\])", lambda m: m[1].strip("\n"), inside)
    return cleandoc(inside)


_PYTHON = Language(
    grammars=(("tree_sitter_python", "language"),),
    places=_python_places,
    function=_python_function,
    strip_marks=_python_strip_marks,
    name=_own_name,
    classes=frozenset({"class_definition"}),
)


_JAVA = Language(
    grammars=(("tree_sitter_java", "language"),),
    places=block_comments,
    function=_begins(
        "method_declaration",
        "constructor_declaration",
        "compact_constructor_declaration",
        "annotation_type_element_declaration",
    ),
    strip_marks=strip_block_marks,
    name=_own_name,
    classes=frozenset(
        {
            "annotation_type_declaration",
            "class_declaration",
            "enum_declaration",
            "interface_declaration",
            "record_declaration",
        }
    ),
)


_cpp_declaration = _begins("function_definition", "declaration", "field_declaration", "template_declaration")


def _cpp_function(path: NodePath) -> NodePath | None:
    found = _cpp_declaration(path)
    return found if found and _cpp_declarator(found[-1]) else None


def _cpp_declarator(node: Node) -> Node | None:
    """Return the node `function_declarator` in a declaration or template; None if it declares no function."""
    inner: Node | None = node
    # The return type wraps the declarator: a pointer to a function's result is a `pointer_declarator` around
    # it.
    while inner is not None and inner.type != "function_declarator":
        if inner.type == "template_declaration":
            inner = inner.named_children[-1]
        elif inner.type == "reference_declarator":  # has no field
            inner = inner.named_children[0] if inner.named_children else None
        else:
            inner = inner.child_by_field_name("declarator")
    return inner


def _cpp_name(node: Node) -> str:
    """Return the name of a C++ function, destructor or operator, such as "Stack::push"."""
    declarator = _cpp_declarator(node)
    name = declarator.child_by_field_name("declarator") if declarator else None
    return text(name) if name else ""


_CPP = Language(
    grammars=(("tree_sitter_cpp", "language"),),
    places=block_comments,
    function=_cpp_function,
    strip_marks=strip_block_marks,
    name=_cpp_name,
    classes=frozenset({"class_specifier", "namespace_definition", "struct_specifier", "union_specifier"}),
)


_PHP = Language(
    grammars=(("tree_sitter_php", "language_php"),),
    places=block_comments,
    function=_begins("function_definition", "method_declaration"),
    strip_marks=strip_block_marks,
    name=_own_name,
    classes=frozenset(
        {"class_declaration", "enum_declaration", "interface_declaration", "trait_declaration"}
    ),
    tag=b"<?",
    grammar_without_tag=("tree_sitter_php", "language_php_only"),
)


_JS_NAMED = frozenset(
    {
        "abstract_method_signature",
        "function_declaration",
        "function_signature",
        "generator_function_declaration",
        "method_definition",
        "method_signature",
    }
)
_JS_ANONYMOUS = frozenset({"arrow_function", "function_expression", "generator_function"})

# Types of nodes that may contain a function, and the field that holds the function ("": the first child).
_JS_AROUND = {
    "ambient_declaration": "",
    "assignment_expression": "right",
    "export_statement": "declaration",
    "expression_statement": "",
    "field_definition": "value",
    "lexical_declaration": "",
    "pair": "value",
    "public_field_definition": "value",
    "variable_declaration": "",
    "variable_declarator": "value",
}
_JS_OPENS = frozenset({*_JS_NAMED, *_JS_AROUND}) - {"assignment_expression", "variable_declarator"}


def _js_function(path: NodePath) -> NodePath | None:
    """Find the declaration of the function that begins with a token, or with decorators before it."""
    start = path_to_type(path, _JS_OPENS) or path_to_type(path, frozenset({"decorator"}))
    if not start:
        return None
    declaration: Node | None = start[-1]
    while declaration and declaration.type == "decorator":
        declaration = declaration.next_named_sibling
    return [*start[:-1], declaration] if declaration and _js_function_inside(declaration) else None


def _js_function_inside(node: Node) -> Node | None:
    """Return the function in a declaration, if any, such as `() => 1` in `const f = () => 1`."""
    here: Node | None = node
    while here and here.type in _JS_AROUND:
        by = _JS_AROUND[here.type]
        if here.type == "export_statement":
            here = here.child_by_field_name("declaration") or here.child_by_field_name("value")
        else:
            here = here.child_by_field_name(by) if by else here.named_child(0)
    return here if here and here.type in _JS_NAMED | _JS_ANONYMOUS else None


def _js_name(node: Node) -> str:
    """Return the name of a function without prefixes: `exports.f = () => 1` gives "f"."""
    here: Node | None = node
    while here and here.type not in _JS_NAMED:
        for by in ("left", "key", "property", "name"):
            if child := here.child_by_field_name(by):
                return re.sub(r"^(?:module\.)?exports\.|\bthis\.|\bprototype\.|[\"']", "", text(child))
        inner = here.child_by_field_name("declaration") or here.named_child(0)
        here = inner if here.type in _JS_AROUND else None
    return field_text(here, "name") if here else ""


_JAVASCRIPT = Language(
    # If the first grammar finds errors, the source may be Flow, which is similar to TypeScript.
    grammars=(("tree_sitter_javascript", "language"), ("tree_sitter_typescript", "language_tsx")),
    places=block_comments,
    function=_js_function,
    strip_marks=strip_block_marks,
    name=_js_name,
    classes=frozenset(
        {"abstract_class_declaration", "class", "class_declaration", "interface_declaration", "module"}
    ),
)
_TYPESCRIPT = replace(
    _JAVASCRIPT,
    # With JSX, a cast `<T>x` would be an element. Therefore the grammar without JSX comes first.
    grammars=(
        ("tree_sitter_typescript", "language_typescript"),
        ("tree_sitter_typescript", "language_tsx"),
    ),
)


def _lines_and_blocks(
    lines: re.Pattern[bytes], block: re.Pattern[bytes], sign: bytes, code: bytes
) -> Iterator[CommentPlace]:
    """Yield the places of comments directly before functions; `sign` is in all code with blocks."""
    places = [*line_comments(code, lines), *(line_comments(code, block) if sign in code else ())]
    yield from sorted(places, key=lambda place: place.start)


_GO_LINES = re.compile(rb"(?m)^((?:[ \t]*//[^\n]*\n)++)[ \t]*(func\b|[A-Z]\w*\()?")
_GO_BLOCK = re.compile(rb"(?m)^(/\*(?s:.*?)(?:\*/|\Z))[ \t]*\n?(func\b)?")


def _go_strip_marks(raw: str) -> str:
    """Remove the comment marks from a Go comment, and drop compiler directives such as `//go:build`."""
    if raw.startswith("/*"):
        return strip_block_marks(raw)
    directives = re.compile(r"(?<![ \t])[ \t]*//(?:[a-z]+:[a-z]|nolint|export |line |\+build)[^\n]*\n")
    return strip_line_marks(directives.sub("", raw), "//")


def _go_name(node: Node) -> str:
    """Return the name of a Go function. For a method, this is `Type.name` with the type of the receiver."""
    # Only the end is searched, because a receiver in hostile code may be very long.
    receiver = re.search(r"\*?\s*(\w+)\s*(?:\[[^\]]*\])?\s*\)\Z", field_text(node, "receiver")[-1_000:])
    return (f"{receiver[1]}." if receiver else "") + field_text(node, "name")


_GO = Language(
    grammars=(("tree_sitter_go", "language"),),
    places=partial(_lines_and_blocks, _GO_LINES, _GO_BLOCK, b"*/\nfunc"),
    function=_begins("function_declaration", "method_declaration", "method_elem"),
    strip_marks=_go_strip_marks,
    name=_go_name,
    classes=frozenset({"type_spec"}),
)


_RUBY_LINES = re.compile(rb"(?m)^((?:[ \t]*#[^\n]*\n)++)[ \t]*(?:(?!def\b)[a-z_]\w*[ \t(]+)?(def\b)?")
_RUBY_BLOCK = re.compile(rb"(?m)^(=begin(?s:.*?)(?:^=end|\Z))[^\n]*\n?[ \t]*(def\b)?")


def _ruby_strip_marks(raw: str) -> str:
    """Remove comment marks, magic comments and hidden lines from a Ruby comment."""
    if raw.startswith("=begin"):
        return re.sub(r"\A=begin[^\n]*|\n=end.*\Z", "", raw).strip()
    # RDoc hides the lines from `#--` to `#++`, or to the end of the comment.
    hidden = re.compile(r"(?ms)^[ \t]*#--[ \t]*$.*?(?:^[ \t]*#\+\+[ \t]*$|\Z)")
    # A magic comment is a setting such as `# frozen_string_literal: true`.
    magic = re.compile(r"(?m)^[ \t]*#[ \t]*(?:frozen_string_literal|encoding|rubocop|typed:|-\*-).*$")
    return strip_line_marks(magic.sub("", hidden.sub("", raw)), "#+")


_RUBY = Language(
    grammars=(("tree_sitter_ruby", "language"),),
    places=partial(_lines_and_blocks, _RUBY_LINES, _RUBY_BLOCK, b"\n=begin"),
    function=_begins("method", "singleton_method"),
    strip_marks=_ruby_strip_marks,
    name=_own_name,
    classes=frozenset({"class", "module"}),
)


LANGUAGES = {
    "python": _PYTHON,
    "java": _JAVA,
    "cpp": _CPP,
    "php": _PHP,
    "javascript": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "go": _GO,
    "ruby": _RUBY,
}
