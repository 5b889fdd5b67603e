"""Rules for the documentation comments of each language: where the prose ends, and how to remove markup."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# A rule is a pattern and its replacement. With `(?m)`, ^ and $ match at every line.
Rules = list[tuple[re.Pattern[str], str]]


@dataclass(frozen=True)
class Dialect:
    """The rules for the documentation comments of one programming language.

    Attributes:
        ends: Pattern of the end of the prose, such as a tag (`@param`).
        blocks: Rules for the whole prose.
        inline: Rules for each paragraph.
        code_indent: Spaces or tabs with which a line of code begins at least. The line must also come first,
            or after an empty line, a heading, other code or a colon. List items are never code.
    """

    ends: re.Pattern[str] = re.compile(r"(?!)")
    blocks: Rules = field(default_factory=list)
    inline: Rules = field(default_factory=list)
    code_indent: int = 99


def _rules(*pairs: tuple[str, str]) -> Rules:
    return [(re.compile(pattern), new) for pattern, new in pairs]


_FENCES = _rules((r"(?m)^[ \t]*(```|~~~)(?s:.*?)(?:^[ \t]*\1[^\n]*$|\Z)", "\n"))
_RULERS = _rules(
    (r"(?m)^\s{0,200}[-=*~#/]{4,}[ \t]*\n[^\n]*\n[ \t]*[-=*~#/]{4,}[ \t]*$", "")
)  # a title between two rulers

_HTML_BLOCKS = _rules(
    (r"<!--(?s:.*?)(?:-->|\Z)", ""),
    (r"(?i)<(pre|table|script|style|blockquote)\b[^>]*>(?s:.*?)(?:</\1>|\Z)", "\n\n"),
    (r"(?i)<h[1-6]\b[^>]*>[^<]*</h[1-6]>|<hr\s*/?>", "\n\n"),
    (r"(?i)<(?:li|dt|dd)\b[^<>]*>", "\n\n- "),
    (r"(?i)</?(?:p|ul|ol|dl|div|center|dd|dt|li)\b[^<>]*>|<br\s*/?>", "\n\n"),
)
_HTML = _rules(
    (
        r"(?i)</?(?:a|abbr|acronym|b|big|cite|code|del|dfn|em|font|i|img|kbd|q|s|samp|small|span|strong|sub|sup|"
        r"tt|u|var)(?:\s[^<>]*)?/?>",
        "",
    )
)

_EMPHASIS = [
    (r"(?<![\w*\\])\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*(?![\w*])", r"\1"),
    (r"(?<![\w*\\])\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*(?![\w*])", r"\1"),
]
_MARKDOWN = _rules(
    (r"!\[[^\]]*\]\([^)]*\)", ""),
    (r"\[([^\[\]]+)\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*\)", r"\1"),
    (r"\[([^\[\]]+)\]\[[^\[\]]*\]", r"\1"),
    (r"(?<!`)(`{1,4})(?=\S)(.{1,500}?)(?<=\S)\1(?!`)", r"\2"),
    *_EMPHASIS,
    (r"(?<![\w_])__?(?=[A-Za-z])([A-Za-z][^_\n]*?)(?<=\w)__?(?![\w_])", r"\1"),
)

# {@link Type#member label} becomes the label, or Type.member without a label; {@code x} becomes x.
_LINK = r"\{@(?:link|linkplain|linkcode|see|tutorial|value)\s+"
_BRACED = _rules(
    (r"\[([^\[\]]+)\]\{@link(?:code|plain)?\s[^{}]*\}", r"\1"),
    (_LINK + r"[^\s{}|(]*\([^(){}]*\)\s+([^{}]+)\}", r"\1"),
    (_LINK + r"[^\s{}|(]+(?:\s*\|\s*|\s+)([^{}]+)\}", r"\1"),
    (_LINK + r"#?([^\s{}#]+)\s*\}", r"\1"),
    (_LINK + r"([^\s{}#]+)#([^{}]+)\}", r"\1.\2"),
    (_LINK + r"#?([^{}]+)\}", r"\1"),
    (r"\{@(?:code|literal|index|summary|term|systemProperty)\s+([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}", r"\1"),
    (r"\{@(?:inheritDoc|inheritdoc|docRoot|value)\b[^{}]*\}", ""),
    (r"\{@\w+\s*([^{}]*)\}", r"\1"),
)

_RST_BLOCKS = _rules(
    (r"(?m)^([ \t]*)\.\.[ \t].*(?:\n(?:[ \t]*\n)*\1[ \t]+\S.*)*", ""),  # directives and comments
    (r"(?m)^[ \t]*>>>(?:.*\S.*\n?)+", "\n"),
    (r"(?m)(::)[ \t]*\n[ \t]*\n(?:[ \t]+\S.*\n?|[ \t]*\n)+", "\\1\n\n"),
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
_PYTHON_ENDS = (
    r"(?m)^[ \t]*[:@](?:param|parameter|arg|argument|key|keyword|type|returns?|rtype|raises?|except|"
    r"exception|var|ivar|cvar|vartype|yields?|ytype|meta|see|since|note|deprecated|author)\b[^:\n]*:"
    r"|^[ \t]*(?:Arg(?:ument)?s?|Param(?:eter)?s?|Other Parameters|Keyword Arg(?:ument)?s|Kwargs|Returns?|"
    r"Yields?|Raises?|Throws|Except(?:ion)?s?|Attributes?|Examples?|Example usage|Usage|Notes?|Warnings?|"
    r"Todo|TODO|See [Aa]lso|References?|Inputs?|Outputs?)[ \t]*:{1,2}[ \t]*$"
    r"|^[^\n]+\n[ \t]*[-=~^]{3,}[ \t]*$"  # an underlined heading
)

_RDOC_BLOCKS = _rules(
    (
        r"(?m)^[ \t]*:?(?:call-seq|nodoc|startdoc|stopdoc|yields|args|method|singleton-method):"
        r".*(?:\n[ \t]+\S.*)*",
        "",
    ),
    (r"(?m)^([:\w]\S*)[ \t]*::[ \t]", r"- \1: "),
)
_RDOC = _rules(
    (r"\A(?:Public|Internal|Private)\s*:\s*", ""),  # TomDoc
    (r"\{([^{}]+)\}\[[^\[\]\s]+\]", r"\1"),
    (r"\{((?:[\w.]+::)*#?[\w.:#?!=]+)\}", r"\1"),
    (r"\{[\w.:#?!=]+(?:\([^)]*\))?\s+([^{}]+)\}", r"\1"),
    (r"\b(\w+)\[(?:https?:|rdoc-ref:|mailto:|link:)[^\[\]]*\]", r"\1"),
    (r"(?<![\w+])\+(\S(?:[^+\n]*\S)?)\+(?![\w+])", r"\1"),
)
_RUBY_ENDS = (
    r"(?m)^[ \t]*@!?[a-z]|^(?:Examples?|Returns?|Raises?|Yields?)\b:?[ \t]*$"
    r"|^(?<=\n)Returns? (?:the|an?|nil|true)\b"  # TomDoc
)
_GO = _rules((r"\[\*?([\w./]+)\]", r"\1"))

_TAGS = re.compile(r"(?m)^[ \t]*@[A-Za-z]|(?<=[.;] )@[a-z]")
_JAVADOC = Dialect(_TAGS, _FENCES + _HTML_BLOCKS, _BRACED + _HTML + _MARKDOWN)
_JSDOC = Dialect(_TAGS, _JAVADOC.blocks, _JAVADOC.inline, code_indent=4)

DIALECTS = {
    "go": Dialect(blocks=_RULERS + _FENCES, inline=_MARKDOWN + _GO, code_indent=1),
    "java": _JAVADOC,
    "javascript": _JSDOC,
    "php": _JSDOC,
    "python": Dialect(re.compile(_PYTHON_ENDS), _RST_BLOCKS + _FENCES, _RST),
    "ruby": Dialect(
        re.compile(_RUBY_ENDS),
        _RULERS + _RDOC_BLOCKS + _FENCES + _HTML_BLOCKS,
        _RDOC + _HTML + _MARKDOWN,
        code_indent=2,
    ),
    "typescript": _JSDOC,
    # Doxygen has the same tags.
    "cpp": _JSDOC,
}
