"""Extraction of the prose from a documentation comment, without tags, sections and markup.

First the sections after the prose (such as parameters) are cut off. Then code and tables are removed. The
rest is split into paragraphs, and the markup in each paragraph is removed.
"""

from __future__ import annotations

import re
from html import unescape

from train.corpus.markup_by_language import DIALECTS, Rules

# Characters that are read; the time of the rules grows faster than the length.
LONGEST = 10_000
# Characters; authors do not break lines before this width.
NARROW = 60
# Tags such as @private, then the prose.
_LEADING = re.compile(r"\A(?:\s*+@[^\n]*\n)++[ \t]*\n(?=\s*[A-Za-z])")
_DESCRIPTION = re.compile(r"(?m)^[ \t]*[@\\](?:brief|desc(?:ription)?|summary|details)\b[ \t]*")
_HEADING = re.compile(r"#{1,6}[ \t]+\S|=+[ \t]+\S|[-=~^*_]{3,}\s*\Z")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,2}[.)]|\([a-z0-9]\))\s+(?=\S)")
_CAPITALIZED = re.compile(r"\s*[A-Z][a-z]*\s")
_CONTINUES = re.compile(r"\b(?:an?|and|by|from|in|is|of|or|the|to|with)\Z")
_QUOTE = re.compile(r"\A\s*>\s+")
_MARKED = re.compile(r"[`*_\[{<|+&]|:\s*\Z|\A\w+\s*:")
# A signature used as a title.
_SIGNATURE = re.compile(r"[\w.$:#]+\([^()]*\)\W*\Z")
# A label whose text was removed.
_LABEL = re.compile(r"(?:[\w.]+(?: [\w.]+)?:|Examples?|Usage)\Z")


def paragraphs(text: str, language: str) -> list[str]:
    """Return the paragraphs of prose, each on one line; `text` is without comment marks (such as `/**`)."""
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
    """Return the text before the first match of the pattern, or the whole text."""
    match = pattern.search(text)
    return text[: match.start()] if match else text


def _blocks(text: str, code_indent: int) -> list[str]:
    """Split prose into paragraphs, and remove headings and code."""
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
    """Return whether a line begins a new sentence, although the line above has no final punctuation."""
    word = _CAPITALIZED.match(line)
    # There was room for the word in the line above: the author began a new line on purpose.
    fitted = word and len(before) + len(word[0]) < NARROW
    return bool(fitted and before[-1:].isalnum() and not _CONTINUES.search(before))


def _plain(block: str, rules: Rules) -> str:
    """Remove the markup of a paragraph, and put the paragraph on one line."""
    # Most paragraphs have no markup.
    if _MARKED.search(block):
        for pattern, new in rules:
            block = pattern.sub(new, block)
        block = unescape(block)
    return " ".join(block.split())


def _without_remains(prose: list[str]) -> list[str]:
    """Remove signatures and labels whose code was removed; at least one paragraph is left."""
    while len(prose) > 1 and _SIGNATURE.match(prose[0]):
        prose = prose[1:]
    while len(prose) > 1 and prose[-1].endswith(":"):
        prose = prose[:-1]
    return prose[:1] + [paragraph for paragraph in prose[1:] if not _LABEL.match(paragraph)]
