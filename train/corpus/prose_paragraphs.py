"""Extraction of the prose from a documentation comment, without tags, sections and markup.

First the sections after the prose (such as parameters) are cut off. Then code and tables are removed. The
rest is split into paragraphs, and the markup in each paragraph is removed.
"""

from __future__ import annotations

import re
from html import unescape

from train.corpus.markup_by_language import DIALECTS, Rules

LONGEST = 10_000  # characters that are read; the time of the rules grows faster than the length
NARROW = 60  # characters; authors do not break lines before this width
_LEADING = re.compile(r"\A(?:\s*+@[^\n]*\n)++[ \t]*\n(?=\s*[A-Za-z])")  # @private, then the prose
_DESCRIPTION = re.compile(r"(?m)^[ \t]*[@\\](?:brief|desc(?:ription)?|summary|details)\b[ \t]*")
_HEADING = re.compile(r"#{1,6}[ \t]+\S|=+[ \t]+\S|[-=~^*_]{3,}\s*\Z")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,2}[.)]|\([a-z0-9]\))\s+(?=\S)")
_CAPITALIZED = re.compile(r"\s*[A-Z][a-z]*\s")
_CONTINUES = re.compile(r"\b(?:an?|and|by|from|in|is|of|or|the|to|with)\Z")
_QUOTE = re.compile(r"\A\s*>\s+")
_MARKED = re.compile(r"[`*_\[{<|+&]|:\s*\Z|\A\w+\s*:")
_SIGNATURE = re.compile(r"[\w.$:#]+\([^()]*\)\W*\Z")  # a signature used as a title
_LABEL = re.compile(r"(?:[\w.]+(?: [\w.]+)?:|Examples?|Usage)\Z")  # a label whose text was removed


def paragraphs(text: str, language: str) -> list[str]:
    """Extract the paragraphs of prose from a documentation comment.

    Args:
        text: The comment without comment marks (such as `/**`).
        language: The programming language, one of the keys of `DIALECTS`.

    Returns:
        The paragraphs, each on one line and without markup.
    """
    dialect = DIALECTS[language]
    text = _LEADING.sub("", text[:LONGEST])
    prose = _before(dialect.ends, text)
    if not prose.strip() and (tag := _DESCRIPTION.search(text)):
        prose = _before(dialect.ends, text[tag.end() :])
    for pattern, new in dialect.blocks:
        prose = pattern.sub(new, prose)
    plain = (_plain(block, dialect.inline) for block in _blocks(prose, dialect.code_indent))
    return _without_remains([paragraph for paragraph in plain if re.search(r"\w", paragraph)])


def _before(pattern: re.Pattern[str], text: str) -> str:
    """Return the text before the first match of the pattern; the whole text if there is no match."""
    match = pattern.search(text)
    return text[: match.start()] if match else text


def _blocks(text: str, code_indent: int) -> list[str]:
    """Split prose into paragraphs, and remove headings and code.

    A new paragraph begins after an empty line or a heading, at a list item, and at a line that clearly begins
    a new sentence. A line is code if it follows an empty line or a colon, and begins with enough spaces.

    Args:
        text: The prose.
        code_indent: The number of spaces or tabs with which a line must at least begin to count as code.
    """
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        before = blocks[-1][-1] if blocks[-1] else ""
        if not line.strip() or _HEADING.match(line):
            blocks.append([])
        elif _ITEM.match(line):
            blocks.append([_ITEM.sub("", line, count=1)])
        elif indent >= code_indent and (not before or before.endswith(":")):
            blocks.append([])
        elif before and _new_sentence(before, line):
            blocks.append([line])
        else:
            blocks[-1].append(_QUOTE.sub("", line, count=1))
    return [" ".join(block) for block in blocks]


def _new_sentence(before: str, line: str) -> bool:
    """Return whether a line begins a new sentence, although the line above has no final punctuation.

    A new sentence begins if all of these conditions hold:

    - The line begins with a capitalized word.
    - The line above and this word together are shorter than `NARROW` (60) characters. So there was room for
      the word in the line above, and the author began a new line on purpose.
    - The line above ends with a letter or a digit, but not with a word that needs a continuation, such as
      `the`.

    Args:
        before: The line above `line`.
        line: The line that may begin a new sentence.
    """
    word = _CAPITALIZED.match(line)
    fitted = word and len(before) + len(word[0]) < NARROW
    return bool(fitted and before[-1:].isalnum() and not _CONTINUES.search(before))


def _plain(block: str, rules: Rules) -> str:
    """Remove the markup of a paragraph, and put the paragraph on one line.

    Args:
        block: The paragraph.
        rules: Pairs of a pattern and its replacement, in the order in which they are applied.
    """
    if _MARKED.search(block):  # most paragraphs have no markup
        for pattern, new in rules:
            block = pattern.sub(new, block)
        block = unescape(block)
    return " ".join(block.split())


def _without_remains(prose: list[str]) -> list[str]:
    """Remove the paragraphs of a comment that are not prose, such as a label or a function signature.

    Code and tables were removed before. These paragraphs are removed:

    - at the beginning, function signatures, such as "parse(text)";
    - at the end, paragraphs that end with a colon, such as "For example:";
    - after the first paragraph that is left, labels such as "Usage".

    At least one paragraph is left.

    Args:
        prose: The paragraphs of the comment.

    Returns:
        The paragraphs that are left.
    """
    while len(prose) > 1 and _SIGNATURE.match(prose[0]):
        prose = prose[1:]
    while len(prose) > 1 and prose[-1].endswith(":"):
        prose = prose[:-1]
    return prose[:1] + [paragraph for paragraph in prose[1:] if not _LABEL.match(paragraph)]
