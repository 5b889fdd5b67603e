"""Comments and functions of a source file, and which comments admit technical debt."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from simllm.code.languages.cursor import NodePath
from simllm.code.languages.language import field_text, load_language
from simllm.errors import OptionError

_BLOCK_MARKS = ("/*", "=begin", "<!--")
_DEEPEST = 1_000  # nodes above a function that are searched for its classes


@dataclass(frozen=True)
class FileComment:
    """A comment in a file. Line comments on consecutive lines count as one comment.

    Attributes:
        text: The comment as it stands in the file, with comment marks such as `//`.
        start: The first byte of the comment, from 0.
        end: The first byte after the comment.
        is_alone: Whether there is only white space before the comment on its first line.
    """

    text: str
    start: int
    end: int
    is_alone: bool


@dataclass(frozen=True)
class FileFunction:
    """A function in a file. Positions are bytes from 0.

    Attributes:
        name: The full name, such as `Class.method`: those of the classes and functions around it, and its
            own.
        kind: The type of the function's syntax node, such as "function_definition".
        start: The function's first byte; decorators are included.
        body: The first byte of the function's body; `end` for a function without a body.
        end: The first byte after the function.
    """

    name: str
    kind: str
    start: int
    body: int
    end: int

    def contains(self, comment: FileComment) -> bool:
        """Return whether a comment stands inside the function."""
        return self.start <= comment.start and comment.end <= self.end


class ParsedFile:
    """A parsed source file, with lists of its comments and functions in the order of the file.

    The code must have line feeds as line ends. Raises TimeoutError if parsing takes too long.
    """

    def __init__(self, code: bytes, language: str) -> None:
        self.code = code
        self.comments: list[FileComment] = []
        self.functions: list[FileFunction] = []
        self._rules = load_language(language)
        self._parse()
        ends = [comment.end for comment in self.comments]
        self._above: dict[FileFunction, FileComment] = {}
        for function in self.functions:
            comment = self.comments[number - 1] if (number := bisect_right(ends, function.start)) else None
            # Only the last comment before the function can be directly above it.
            if comment and comment.is_alone and not code[comment.end : function.start].strip():
                self._above[function] = comment

    def comment_above(self, function: FileFunction) -> FileComment | None:
        """Return the comment directly above a function, with only white space between, if there is one."""
        return self._above.get(function)

    def function_of(self, comment: FileComment) -> FileFunction | None:
        """Find the function of a comment: the one directly below, else the innermost around it, if any."""
        below = [function for function, above in self._above.items() if above == comment]
        around = [function for function in self.functions if function.contains(comment)]
        # The shortest is the innermost, also of functions that begin at the same byte.
        return min(below or around, key=lambda function: function.end - function.start, default=None)

    def comments_of(self, function: FileFunction) -> list[FileComment]:
        """Return the comments inside a function, and the comment directly above it if there is one."""
        above = self.comment_above(function)
        return [comment for comment in self.comments if comment == above or function.contains(comment)]

    def signature(self, function: FileFunction) -> bytes:
        """Return a function's code up to its body, without comments and white space, to recognize it."""
        parts, here = [], function.start
        for comment in self.comments:
            if function.start <= comment.start < function.body:
                parts.append(self.code[here : comment.start])
                here = comment.end
        return b"".join(b"".join([*parts, self.code[here : function.body]]).split())

    def text(self, start: int, end: int) -> str:
        """Return the bytes from `start` up to `end` as text, with the indentation before `start`."""
        line = self.code.rfind(b"\n", 0, start) + 1
        indented = not self.code[line:start].strip()
        return self.code[line if indented else start : end].decode(errors="replace")

    def _parse(self) -> None:
        found: set[int] = set()
        last_start = -1
        for path in _leaves(self._rules.parse(self.code)):
            leaf = path[-1]
            if "comment" in leaf.type:
                self._add_comment(leaf)
            elif leaf.start_byte > last_start:  # not an empty leaf at the same byte
                last_start = leaf.start_byte
                declaration = self._rules.function(path)
                if declaration and declaration[-1].id not in found:
                    self._add_function(declaration, found)

    def _add_comment(self, node: Node) -> None:
        """Add a comment to the list `comments`, or join it with the previous comment in the list."""
        start = node.start_byte
        raw = self.code[start : node.end_byte].rstrip()
        line = self.code.rfind(b"\n", 0, start) + 1
        comment = FileComment(
            raw.decode(errors="replace"), start, start + len(raw), not self.code[line:start].strip()
        )
        if self.comments and self._continues(self.comments[-1], comment):
            start = self.comments.pop().start
            text = self.code[start : comment.end].decode(errors="replace")
            comment = FileComment(text, start, comment.end, True)
        self.comments.append(comment)

    def _continues(self, first: FileComment, second: FileComment) -> bool:
        """Return whether two comments are line comments on consecutive lines, with no code on these lines."""
        between = self.code[first.end : second.start]
        return (
            first.is_alone
            and second.is_alone
            and not first.text.startswith(_BLOCK_MARKS)
            and not second.text.startswith(_BLOCK_MARKS)
            and between.count(b"\n") == 1
            and not between.strip()
        )

    def _add_function(self, path: NodePath, found: set[int]) -> None:
        """Add the function at the end of a path from the root; `found` has the ids of nodes in the list."""
        # Deeply nested data would make each function cost as much as the whole path.
        node, above, name = path[-1], path[-_DEEPEST:-1], self._rules.name
        outer = [each for each in above if each.id in found]
        body = _body(node)
        # In `export function f() {}`, the statement and the function in it are one: the outer node counts.
        if outer and (outer[-1].end_byte, name(outer[-1])) == (node.end_byte, name(node)):
            return
        if outer and not body:  # in C++, a variable may look like the declaration of a function
            return
        names = [
            name(each) if each.id in found else field_text(each, "name")
            for each in above
            if each.id in found or each.type in self._rules.classes
        ]
        self.functions.append(
            FileFunction(
                name=".".join(filter(None, [*names, name(node)])).replace("::", "."),
                kind=node.type,
                start=_first_decorator(path).start_byte,
                body=body.start_byte if body else node.end_byte,
                end=node.end_byte,
            )
        )
        found.add(node.id)


def _body(function: Node) -> Node | None:
    """Return the syntax node of a function's body; None for a declaration, which has no body."""
    # Breadth first, because the body of an inner function is deeper than that of its own.
    nodes = deque([function])
    while nodes:
        node = nodes.popleft()
        if body := node.child_by_field_name("body"):
            return body
        nodes += node.named_children
    return None


def _first_decorator(path: NodePath) -> Node:
    """Find the syntax node with which a function begins: its first decorator, or the function itself."""
    # In other languages, decorators are siblings before the function.
    if len(path) > 1 and path[-2].type == "decorated_definition":  # in Python
        return path[-2]
    node = path[-1]
    while (before := node.prev_named_sibling) and before.type == "decorator":
        node = before
    return node


def _leaves(root: Node) -> Iterator[list[Node]]:
    """Yield the path from the root of a syntax tree to each leaf; a comment counts as a leaf.

    The same list is yielded each time, with changed content. The caller must neither store nor change it.
    """
    cursor, path = root.walk(), [root]
    while True:
        # Some grammars divide a comment into parts, which are no comments of their own.
        if "comment" not in path[-1].type and cursor.goto_first_child():
            path.append(_node(cursor.node))
            continue
        yield path
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            path.pop()
        path[-1] = _node(cursor.node)


def _node(node: Node | None) -> Node:
    assert node
    return node


WORDS = ("todo", "fixme", "hack", "xxx")


class DebtWords:
    """The words by which a comment admits debt, such as "todo", in lower or upper case.

    Only whole words count: "TODO:", "todo(bob)" and "@todo", but not "todos", "ToDoList" or "hacky". Words
    are ASCII, as items are, too.
    """

    def __init__(self, words: Iterable[str] = WORDS) -> None:
        self.words = tuple(dict.fromkeys(word.strip().lower() for word in words))
        for word in self.words:
            if not re.fullmatch(r"[!-~]+", word) or not re.search(r"[a-z0-9]", word):
                raise OptionError(
                    "{words} {word}: expected words in ASCII without blanks, such as todo,fixme",
                    word=word or "''",
                )
        pattern = "|".join(map(re.escape, sorted(self.words, key=len, reverse=True)))
        self._text = re.compile(pattern, re.IGNORECASE | re.ASCII)
        self._code = re.compile(pattern.encode())

    def admit(self, comment: FileComment) -> bool:
        """Return whether a comment has one of the words."""
        return any(True for _ in self._lines_with_debt(comment))

    def longest_line(self, comment: FileComment) -> tuple[int, int]:
        """Return the number of words on the line that admits the debt, and the place of this line, from 0.

        Of several such lines in a comment, the one with the most words counts.
        """
        # The other lines may belong to another comment, as line comments on consecutive lines are joined.
        lines = self._lines_with_debt(comment)
        found = [(len(re.findall(r"\w+", line)), -number) for number, line in lines]
        words, number = max(found, default=(0, 0))
        return words, -number

    def _lines_with_debt(self, comment: FileComment) -> Iterator[tuple[int, str]]:
        for number, line in enumerate(comment.text.split("\n")):
            if any(_is_whole_word(line, *found.span()) for found in self._text.finditer(line)):
                yield number, line

    def may_be_in(self, code: bytes) -> bool:
        """Return whether a file contains one of the words: a fast check before a file is parsed."""
        return self._code.search(code.lower()) is not None

    def lines_of(self, code: bytes) -> Counter[bytes]:
        """Count how often each line with one of the words occurs in a file, without outer white space.

        A commit has deleted such a line only if a count is lower after it. Other files need not be parsed.
        """
        # By the start of the line, so that a line with two such words counts once.
        lines, code = {}, code + b"\n"
        for match in self._code.finditer(code.lower()):
            start = code.rfind(b"\n", 0, match.start()) + 1
            lines[start] = code[start : code.find(b"\n", start)].strip()
        return Counter(lines.values())


def _is_whole_word(text: str, start: int, end: int) -> bool:
    around = text[max(0, start - 1) : start] + text[end : end + 1]
    return not any(map(_continues_a_word, around))


def _continues_a_word(character: str) -> bool:
    # Chinese or Japanese letters (Lo) follow a keyword without a blank; an accent (Mn) belongs to its letter.
    return character == "_" or unicodedata.category(character) in ("Lu", "Ll", "Lt", "Lm", "Mn", "Nd")
