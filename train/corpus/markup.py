"""From the text of a documentation comment to its prose: no tags, no sections, no markup.

First what ends the prose is cut, then what is no prose is taken out, then the rest is split into
paragraphs, and last the markup inside each goes.
"""

from __future__ import annotations

import re
from html import unescape

# A rule is a pattern and what takes its place. `(?m)` lets ^ and $ stand at every line.
Rules = list[tuple[re.Pattern[str], str]]


def _rules(*pairs: tuple[str, str]) -> Rules:
    return [(re.compile(pattern), new) for pattern, new in pairs]


_HTML_BLOCKS = _rules(
    (r"<!--(?s:.*?)(?:-->|\Z)", ""),
    (r"(?i)<(pre|table|script|style|blockquote)\b[^>]*>(?s:.*?)(?:</\1>|\Z)", "\n\n"),
    (r"(?i)<h[1-6]\b[^>]*>[^<]*</h[1-6]>|<hr\s*/?>", "\n\n"),
    (r"(?i)<(?:li|dt|dd)\b[^>]*>", "\n\n- "),
    (r"(?i)</?(?:p|ul|ol|dl|div|center|dd|dt|li)\b[^<>]*>|<br\s*/?>\s*<br\s*/?>", "\n\n"),
    (r"(?i)<br\s*/?>", "\n\n"),
)
_INLINE_HTML = "a|abbr|acronym|b|big|cite|code|del|dfn|em|font|i|img|kbd|q|s|samp|small|span|strong|sub|sup|tt|u|var"
_HTML = _rules((rf"(?i)</?(?:{_INLINE_HTML})(?:\s[^<>]*)?/?>", ""))

_FENCES = _rules((r"(?m)^[ \t]*(```|~~~)(?s:.*?)(?:^[ \t]*\1[^\n]*$|\Z)", "\n"))
_CODE_SPAN = (r"(`+)(?=\S)(.+?)(?<=\S)\1(?!`)", r"\2")
_EMPHASIS = [
    (r"(?<![\w*\\])\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*(?![\w*])", r"\1"),
    (r"(?<![\w*\\])\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*(?![\w*])", r"\1"),
]
_MARKDOWN = _rules(
    (r"!\[[^\]]*\]\([^)]*\)", ""),
    (r"\[([^\[\]]+)\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*\)", r"\1"),
    (r"\[([^\[\]]+)\]\[[^\[\]]*\]", r"\1"),
    _CODE_SPAN,
    *_EMPHASIS,
    (r"(?<![\w_])__?(?=[A-Za-z])([A-Za-z][^_\n]*?)(?<=\w)__?(?![\w_])", r"\1"),
)

# {@link Type#member label} is its label, or else Type.member; {@code x} is x.
_BRACED = _rules(
    (r"\[([^\[\]]+)\]\{@link(?:code|plain)?\s[^{}]*\}", r"\1"),
    (r"\{@(?:link|linkplain|linkcode|see|tutorial)\s+[^\s{}|]*\([^(){}]*\)\s+([^{}]+)\}", r"\1"),
    (r"\{@(?:link|linkplain|linkcode|see|tutorial)\s+[^\s{}|(]+(?:\s*\|\s*|\s+)([^{}]+)\}", r"\1"),
    (r"\{@(?:link|linkplain|linkcode|see|tutorial|value)\s+#?([^\s{}#]+)\s*\}", r"\1"),
    (r"\{@(?:link|linkplain|linkcode|see|tutorial|value)\s+([^\s{}#]+)#([^{}]+)\}", r"\1.\2"),
    (r"\{@(?:link|linkplain|linkcode|see|tutorial|value)\s+#?([^{}]+)\}", r"\1"),
    (r"\{@(?:code|literal|index|summary|term|systemProperty)\s+([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}", r"\1"),
    (r"\{@(?:inheritDoc|inheritdoc|docRoot|value)\b[^{}]*\}", ""),
    (r"\{@\w+\s*([^{}]*)\}", r"\1"),
)

_RST = _rules(
    (r"(?::[a-z]+)?:[a-z]+:`([^`<]+?)\s*<[^`<>]*>`", r"\1"),
    (r"(?::[a-z]+)?:[a-z]+:`~(?:[\w.]+\.)?([^`.]+)`", r"\1"),
    (r"(?::[a-z]+)?:[a-z]+:`[!.]?([^`]+)`", r"\1"),
    (r"`([^`<]+?)\s*<[^`<>]*>`__?", r"\1"),
    (r"``(?=\S)(.+?)(?<=\S)``", r"\1"),
    (r"`([^`]+)`(?:__?)?", r"\1"),
    (r"\s*\[(?:\d+|#\w*|[A-Z]\w+)\]_", ""),
    (r"(?<!\w)\|(\w[\w. ]*)\|(?!\w)", r"\1"),
    (r"\[([^\[\]]+)\]\([^()\s]+\)", r"\1"),
    *_EMPHASIS,
    (r"(?:^|(?<=\s))::$", ""),
    (r"::$", ":"),
    (r"\b[LCBIMEU]\{([^{}]*)\}", r"\1"),
)
_RDOC = _rules(
    (r"\{([^{}]+)\}\[[^\[\]\s]+\]", r"\1"),
    (r"\{((?:[\w.]+::)*#?[\w.:#?!=]+)\}", r"\1"),
    (r"\{[\w.:#?!=]+(?:\([^)]*\))?\s+([^{}]+)\}", r"\1"),
    (r"\b(\w+)\[(?:https?:|rdoc-ref:|mailto:|link:)[^\[\]]*\]", r"\1"),
    (r"(?<![\w+])\+(\S(?:[^+\n]*\S)?)\+(?![\w+])", r"\1"),
)
_GODOC = _rules((r"\[\*?([\w./]+)\]", r"\1"))
_TOMDOC = _rules((r"\A(?:Public|Internal|Private)\s*:\s*", ""))


class _Dialect:
    """How the comments of a language are written."""

    def __init__(
        self, ends: str = r"(?!)", out: Rules | None = None, inline: Rules | None = None, code: int = 99
    ) -> None:
        self.ends = re.compile(ends)
        self.out = out or []
        self.inline = inline or []
        self.code = code  # a block that is indented by so much is code


_TAGS = r"(?m)^[ \t]*@[A-Za-z]"
_RULERS = _rules((r"(?m)^\s*[-=*~#/]{4,}[ \t]*\n[^\n]*\n[ \t]*[-=*~#/]{4,}[ \t]*$", ""))
_JSDOC = _Dialect(_TAGS, _FENCES + _HTML_BLOCKS, _BRACED + _HTML + _MARKDOWN, code=4)
_DIALECTS = {
    "java": _Dialect(_TAGS, _FENCES + _HTML_BLOCKS, _BRACED + _HTML + _MARKDOWN),
    "javascript": _JSDOC,
    "typescript": _JSDOC,
    "php": _JSDOC,
    "go": _Dialect(out=_RULERS + _FENCES, inline=_MARKDOWN + _GODOC, code=1),
    "ruby": _Dialect(
        r"(?m)^[ \t]*@!?[a-z]|^(?:Examples?|Returns?|Raises?|Yields?)\b:?[ \t]*$|^(?<=\n)Returns? (?:the|an?|nil|true)\b",
        _RULERS
        + _rules((r"(?m)^[ \t]*:?(?:call-seq|nodoc|startdoc|stopdoc|yields|args|method|singleton-method):.*(?:\n[ \t]+\S.*)*", ""))
        + _FENCES
        + _HTML_BLOCKS,
        _TOMDOC + _RDOC + _HTML + _MARKDOWN,
        code=2,
    ),
    "python": _Dialect(
        r"(?m)^[ \t]*[:@](?:param|parameter|arg|argument|key|keyword|type|returns?|rtype|raises?|except|exception|"
        r"var|ivar|cvar|vartype|yields?|ytype|meta|see|since|note|deprecated|author)\b[^:\n]*:"
        r"|^[ \t]*(?:Args?|Arguments?|Param(?:eter)?s?|Other Parameters|Keyword Arg(?:ument)?s|Kwargs|Returns?|Yields?|"
        r"Raises?|Throws|Except(?:ion)?s?|Attributes?|Examples?|Example usage|Usage|Notes?|Warnings?|Todo|TODO|"
        r"See [Aa]lso|References?|Inputs?|Outputs?)[ \t]*:{1,2}[ \t]*$"
        r"|^[^\n]+\n[ \t]*[-=~^]{3,}[ \t]*$",
        _rules(
            (r"(?m)^([ \t]*)\.\.[ \t](?:.*)(?:\n(?:[ \t]*\n)*\1[ \t]+\S.*)*", ""),
            (r"(?m)^[ \t]*>>>(?:.*\S.*\n?)+", "\n"),
            (r"(?m)(::)[ \t]*\n[ \t]*\n(?:[ \t]+\S.*\n?|[ \t]*\n)+", "\\1\n\n"),
        )
        + _FENCES,
        _RST,
    ),
}

_DESCRIPTION = re.compile(r"(?m)^[ \t]*@(?:desc(?:ription)?|summary|details)\b[ \t]*")
_LEADING = re.compile(r"\A(?:\s*+@[^\n]*\n)++[ \t]*\n(?=\s*[A-Za-z])")  # @private, then the prose
_HEADING = re.compile(r"#{1,6}[ \t]+\S|=+[ \t]+\S|[-=~^*_]{3,}\s*\Z")
_QUOTE = re.compile(r"\A\s*>\s+")
_LABEL = re.compile(r"\w+(?: \w+)?:?\Z")  # "Examples:", of which nothing is left
_MARKED = re.compile(r"[`*_\[{<|+&]|:\s*\Z|\A\w+\s*:")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,2}[.)]|\([a-z0-9]\))\s+(?=\S)")


def paragraphs(text: str, language: str) -> list[str]:
    """Return the prose of a comment, whose marks are gone, one line a paragraph."""
    dialect = _DIALECTS[language]
    text = _LEADING.sub("", text)
    prose = _before(dialect.ends, text)
    if not prose.strip() and (tag := _DESCRIPTION.search(text)):
        prose = _before(dialect.ends, text[tag.end() :])
    for pattern, new in dialect.out:
        prose = pattern.sub(new, prose)
    plain = (_plain(block, dialect.inline) for block in _blocks(prose, dialect.code))
    kept = [paragraph for paragraph in plain if re.search(r"\w", paragraph)]
    return kept[:1] + [paragraph for paragraph in kept[1:] if not _LABEL.match(paragraph)]


def _before(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return text[: match.start()] if match else text


def _blocks(text: str, code: int) -> list[str]:
    """Split prose at empty lines, list items and headings; without headings and indented code."""
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if not line.strip() or _HEADING.match(line):
            blocks.append([])
        elif _ITEM.match(line):
            blocks.append([_ITEM.sub("", line, count=1)])
        elif not blocks[-1] and indent >= code:
            continue
        else:
            blocks[-1].append(_QUOTE.sub("", line, count=1))
    return [" ".join(block) for block in blocks]


def _plain(block: str, rules: Rules) -> str:
    if _MARKED.search(block):  # most are not
        for pattern, new in rules:
            block = pattern.sub(new, block)
        block = unescape(block)
    return " ".join(block.split())
