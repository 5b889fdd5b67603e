"""The code in a model's reply, which may have thoughts, text and Markdown around it.

All work is linear in the length of the reply, and parsing has a budget, because replies may be hostile.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from simllm.code.languages.language import Language, find_language

# Labels of code fences that stand for a language, or for one so near that its code is meant.
_LABELS = {
    "cpp": "cpp c++ cplusplus cc cxx c h hh hpp hxx ino",
    "go": "go golang",
    "java": "java",
    "javascript": "javascript js jsx mjs cjs es ecmascript node nodejs typescript ts tsx",
    "php": "php phtml",
    "python": "python py pyi pyw ipython cpython pypy sage",
    "ruby": "ruby rb jruby rake",
    "typescript": "typescript ts tsx mts cts javascript js jsx mjs cjs es ecmascript node nodejs",
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
_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function"})
_VARIABLES = frozenset(  # statements that define a variable
    {
        "assignment",
        "assignment_expression",
        "const_declaration",
        "declaration",
        "field_declaration",
        "lexical_declaration",
        "local_variable_declaration",
        "short_var_declaration",
        "var_declaration",
        "variable_declaration",
    }
)
_CALLS = frozenset({"call", "call_expression", "function_call_expression", "method_invocation"})
_NAMES = frozenset({"identifier", "constant", "name", "type_identifier", ","})
_READERS = frozenset(
    {"input", "raw_input", "stdin", "open", "fileinput", "gets", "STDIN", "ARGF", "readline"}
)

_TAG = "(?:seed:)?(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad|analysis)"
_OPENING = rf"<{_TAG}>|\[think\]|◁think▷|<\|begin_of_thought\|>|<\|channel\|>analysis<\|message\|>"
_CLOSING = rf"</{_TAG}>|\[/think\]|◁/think▷|<\|end_of_thought\|>|<\|channel\|>final<\|message\|>"
# A fence may stand behind the marks of lists and quotations, and before the end of a thought. Possessive
# quantifiers keep this linear.
_FENCE = (
    r"(?P<lead>[ \t]*+(?:(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]))[ \t]*+)*+)"
    r"(?P<fence>`{3,}+|~{3,}+)"
    rf"(?P<info>(?:(?!{_CLOSING})[^\n])*+)"
)
_MARK = re.compile(
    rf"^{_FENCE}|^[ \t]*+(?P<open>{_OPENING})|(?P<edge>^[ \t]*+)?(?P<close>{_CLOSING})(?P<tail>[ \t]*+$)?",
    re.MULTILINE | re.IGNORECASE,
)
_FENCE_HERE = re.compile(_FENCE)
_QUOTED = re.compile(r"^[ \t]*>[ ]?", re.MULTILINE)
_PROSE = re.compile(r"\s*(?:(?:[#*>•-]+|\d+[.)])\s+)?\**[A-Z][\w',:.]*\**(?:\s+[^\s;{}=]+)*\s*")
_MOST_PARSED = 1_000_000  # characters of all texts that are parsed to find the code of one reply
_COST = 200  # characters that are parsed in the time in which a parser begins
_LONGEST_WORK = 5.0  # seconds of processor time for all parsing; a thousandth is enough for real replies
_LONGEST = 4_000_000  # characters; a longer reply has no code


@dataclass(frozen=True)
class ReplyCode:
    """The code of a reply; None if the reply has no code.

    Attributes:
        is_ambiguous: Whether the code is the last of several different blocks that fit equally well.
    """

    text: str | None
    is_ambiguous: bool = False


@dataclass(frozen=True)
class _Block:
    label: str
    text: str


def code_of_reply(
    reply: str, language: str, is_program: bool = False, source: str | None = None
) -> ReplyCode:
    """Find the code in a language model's reply; `source` is the code that the model was asked to change.

    Thoughts (`<think>…</think>` and the like) are dropped first. Then the code is one of the Markdown code
    blocks between fences. Blocks are chosen by these rules, in order:

    1. Blocks labelled with the language, or a near one (c for C++), are preferred to blocks without a label.
       A block with another label counts only if there is no other block.
    2. Blocks are preferred that define most of the names that `source` defines; without such names, blocks
       that define any function or class. If a program has no definitions, blocks that read input are
       preferred, if `source` does.
    3. A block that repeats `source` counts only if there is no other block.
    4. The last block is taken.

    A reply without blocks is code if it parses and defines something (or, as a whole program, calls
    something). Otherwise, the code reaches from its first to its last definition; a whole program is the
    longest part that parses.
    """
    parser = _Parser(find_language(language))
    if len(reply) > _LONGEST:
        return ReplyCode(None)
    blocks, rest = _blocks(reply.replace("\r\n", "\n").replace("\r", "\n"))
    if blocks is None:
        if len(rest) > _MOST_PARSED or not rest.strip():
            return ReplyCode(None)
        return ReplyCode(_unfenced_code(rest, parser, is_program))
    labels = _LABELS[language].split()
    own = [block for block in blocks if block.label in labels] or [one for one in blocks if not one.label]
    found = own or (blocks if len(blocks) == 1 else [])
    texts = list(dict.fromkeys(block.text for block in reversed(found)))[::-1]  # the last of equal blocks
    if len(texts) > 1:
        texts = _best_blocks(texts, parser, is_program, source)
    return ReplyCode(texts[-1] if texts else None, len(texts) > 1)


class _Parser:
    """A parser with a budget for all texts of one reply."""

    def __init__(self, rules: Language) -> None:
        self._rules, self._left = rules, _MOST_PARSED
        # Processor time of this thread: a busy machine must not change which code is found.
        self._until = time.thread_time() + _LONGEST_WORK

    def parse(self, text: str) -> Node | None:
        """Return the root of a text's syntax tree; None if the budget is used up."""
        # Each parse also costs the time in which a parser begins, so that many short texts use up the budget,
        # too.
        self._left -= len(text) + _COST
        if self._left < 0 or time.thread_time() > self._until:
            return None
        try:
            return self._rules.parse(text.encode(errors="replace"))
        except TimeoutError:
            self._left = 0
            return None


def _blocks(reply: str) -> tuple[list[_Block] | None, str]:
    """Return the non-blank blocks between fences (None without a fence), and the reply without thoughts."""
    blocks: list[_Block] = []
    rest = start = place = 0  # the begin of the answer, the begin of the open block
    opened: re.Match[str] | None = None
    has_fence = thinks = has_tag = False
    kept: list[str] = []
    while mark := _MARK.search(reply, place):
        place = mark.end()
        if thinks:
            if mark["close"]:
                thinks, rest = False, place
                if (fence := _FENCE_HERE.match(reply, place)) and _opens(fence):
                    opened, start, place = fence, fence.end() + 1, fence.end()
                    has_fence = True
        elif mark["close"]:
            is_alone = mark["edge"] is not None and mark["tail"] is not None
            is_at_edge = mark["edge"] is not None or mark["tail"] is not None
            if (is_alone and not has_tag) or (is_at_edge and opened is None):
                # The thought began in the prompt, or it had tags inside.
                blocks, kept, rest, opened, has_fence = [], [], place, None, False
        elif opened is not None:
            if mark["fence"] and _closes(mark, opened):
                blocks.append(_block(reply[start : max(start, mark.start() - 1)], opened))
                opened = None
            has_tag = has_tag or mark["open"] is not None  # then the end of a thought may be code, too
        elif mark["open"]:
            kept.append(reply[rest : mark.start()])
            rest, thinks, has_tag = len(reply), True, True
        elif _opens(mark):
            opened, start, has_fence = mark, place + 1, True
    if opened is not None:
        blocks.append(_block(reply[start:], opened))
    answer = "".join([*kept, reply[rest:]])
    return [block for block in blocks if block.text.strip()] if has_fence else None, answer


def _opens(mark: re.Match[str]) -> bool:
    """Return whether a line with fence marks begins a code block."""
    # By CommonMark, "```a```" in a line is inline code. A block of Markdown is no block of its own, because
    # the code blocks inside have fences, too.
    is_inline = "`" in mark["info"] and mark["fence"][0] == "`"
    return not is_inline and _label(mark["info"]) not in ("markdown", "md")


def _closes(mark: re.Match[str], opened: re.Match[str]) -> bool:
    """Return whether a line with fence marks ends the open block, by the rules of CommonMark."""
    lead, fence = mark["lead"].replace(">", ""), mark["fence"]
    return (
        fence.startswith(opened["fence"])
        and not mark["info"].strip()
        and not lead.strip()
        and len(lead) <= len(opened["lead"]) + 3  # farther right, the line is part of the code
    )


def _block(content: str, opened: re.Match[str]) -> _Block:
    """Make a block from its content and its first line."""
    if ">" in opened["lead"]:
        content = _QUOTED.sub("", content)
    lines = content.split("\n")
    indents = (len(line) - len(line.lstrip()) for line in lines if line.strip())
    # The indentation of the fence is removed if all lines have it, and otherwise from no line: many models
    # write a blank before a fence.
    width = min(len(opened["lead"]) * (">" not in opened["lead"]), min(indents, default=0))
    return _Block(_label(opened["info"]), "\n".join(line[width:] for line in lines))


def _label(info: str) -> str:
    """Return the language in the text after an opening fence; "" for a fence without a label.

    "python3.11", "{.python}", "language-python", "python:main.py" and "main.py" give "python" or "py".
    """
    word = (
        re.split(r"[\s,:;]", info.strip("{}. \t").lower())[0].removeprefix("language-").rstrip("0123456789.")
    )
    return re.split(r"[./\\]", word)[-1]


def _best_blocks(texts: Sequence[str], parser: _Parser, is_program: bool, source: str | None) -> list[str]:
    """Choose the blocks that fit best (rules 2 and 3 of `code_of_reply`), in their order."""
    wanted = _names(parser.parse(source)) if source is not None else frozenset()
    reads: frozenset[str] = frozenset()
    if is_program and source is not None and not wanted:
        reads = _READERS & _words(source)
    found = list(texts)
    if reads:
        found = [text for text in texts if reads & _words(text)]
        found = found or [text for text in texts if _READERS & _words(text)] or list(texts)
    elif wanted or source is None:
        # The last blocks are parsed first, in case that the budget ends.
        names = [_names(parser.parse(text)) for text in reversed(texts)][::-1]
        hits = [len(wanted & own) for own in names]
        sizes = hits if any(hits) else [bool(own) for own in names]
        largest = max(sizes)
        found = [text for text, size in zip(texts, sizes, strict=True) if size == largest]
    repeated = None if source is None else source.split()
    return [text for text in found if text.split() != repeated] or found


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", re.sub(r"(?m)#.*|\"[^\"\n]*\"|'[^'\n]*'", "", text)))


def _names(root: Node | None) -> frozenset[str]:
    """Return the names of all functions and classes in a syntax tree."""
    found = set()
    for node in _walk(root):
        if node.type in _DEFINITIONS or node.type == "type_spec" or _is_named_function(node):
            name = node.child_by_field_name("name") or node.child_by_field_name("left")
            inner = node.child_by_field_name("declarator")
            while name is None and inner is not None:  # C++: a pointer to an array of …
                name, inner = inner, inner.child_by_field_name("declarator")
                name = name if inner is None else None
            if name is not None and name.text:
                found.add(re.split(rb"::|\.", name.text)[-1].decode(errors="replace"))
    return frozenset(found)


def _is_named_function(node: Node) -> bool:
    """Return whether JavaScript code gives a name to a function: `const f = () => 1`, `a.f = function …`."""
    if node.type not in ("variable_declarator", "assignment_expression"):
        return False
    value = node.child_by_field_name("value") or node.child_by_field_name("right")
    return value is not None and value.type in _FUNCTION_VALUES


def _walk(root: Node | None) -> Iterator[Node]:
    """Yield all named nodes below a root."""
    stack = list(reversed(root.named_children)) if root is not None else []
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(node.named_children)


def _unfenced_code(text: str, parser: _Parser, is_program: bool) -> str | None:
    """Return the code of a text without fences; None if there is none."""
    root = parser.parse(text)
    if root is not None and not root.has_error:
        return _without_words(text, root) if _is_code(root, is_program) else None
    if is_program:
        return _longest_parsed_run(text, parser, is_program)
    return _definitions(text, root) or _definitions_of_run(text, parser)


def _is_code(root: Node, is_program: bool) -> bool:
    """Return whether a tree without errors defines something; a program may also call something."""
    kinds = _DEFINITIONS | (_CALLS if is_program else frozenset())
    for node in _walk(root):
        if node.type in kinds or _is_named_function(node):
            if node.type not in _CALLS or not _is_only_names(node):
                return True
        elif node.type in _VARIABLES and (node.type != "assignment" or node.child_by_field_name("right")):
            return True
    return False


def _is_only_names(node: Node) -> bool:
    """Return whether a node is nothing but names; in Ruby, most sentences are calls of their words."""
    stack = [node]
    while stack:
        node = stack.pop()
        if not node.children and node.type not in _NAMES:
            return False
        stack += node.children
    return True


def _without_words(text: str, root: Node) -> str:
    """Remove the first and the last statements of a text that are only names."""
    nodes = [node for node in root.children if not _is_only_names(node)]
    if not nodes or (nodes[0] == root.children[0] and nodes[-1] == root.children[-1]):
        return text
    code = text.encode(errors="replace")
    begin = code.rfind(b"\n", 0, nodes[0].start_byte) + 1
    return code[begin : nodes[-1].end_byte].decode()


def _definitions_of_run(text: str, parser: _Parser) -> str | None:
    run = _longest_parsed_run(text, parser, is_program=False)
    return run and _definitions(run, parser.parse(run))


def _definitions(text: str, root: Node | None) -> str | None:
    """Return a text from its first to its last function or class; None if there is none."""
    code = text.encode(errors="replace")
    found = [
        node
        for node in _outermost_definitions(root)
        # The words of a sentence may look like a definition. With an error inside, a definition counts only
        # if it begins a line.
        if not node.has_error or not code[code.rfind(b"\n", 0, node.start_byte) + 1 : node.start_byte].strip()
    ]
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


def _outermost_definitions(root: Node | None) -> Iterator[Node]:
    """Yield the nodes of functions and classes that are not inside other functions and classes."""
    stack = list(reversed(root.children)) if root is not None else []  # Python's root is a "module", too
    while stack:
        node = stack.pop()
        if node.is_named and (
            node.type in _DEFINITIONS or any(map(_is_named_function, [node, *node.named_children]))
        ):
            yield node
        else:
            stack += reversed(node.children)


def _longest_parsed_run(text: str, parser: _Parser, is_program: bool) -> str | None:
    """Return the longest run of lines that is code, the first of equal ones; None if there is none."""
    lines = text.split("\n")
    # No run begins or ends with a sentence, so that few runs are left to try.
    edges = [number for number, line in enumerate(lines) if line.strip() and not _PROSE.fullmatch(line)]
    for left_out in range(len(edges)):
        for first in range(left_out + 1):
            start, end = edges[first], edges[len(edges) - 1 - (left_out - first)]
            run = "\n".join(lines[start : end + 1])
            root = parser.parse(run)
            if root is None:
                return None
            if not root.has_error and _is_code(root, is_program):
                return _without_words(run, root)
    return None
