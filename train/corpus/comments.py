"""Comments, and the prose of documentation comments: the markup of each language, paragraphs, sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape

from simllm.text_cleaning import EMPHASIS, FENCES, HEADING, ITEM, MARKDOWN, Rules, rules, sentence_ends


@dataclass(frozen=True)
class Comment:
    """The documentation of one function or method, as plain text. Unknown values are "".

    Attributes:
        description: The whole text, which begins with the summary; "" if there is only the summary.
        language: In small letters, such as "python".
        function: The full name, with the names of the classes, as in `Class.method`.
        path: The path of the source file in the repository.
        licence: The name of the licence file in the repository.
        overrides: Names of the supertypes of the method's class, separated by spaces.
    """

    summary: str
    description: str = ""
    language: str = ""
    function: str = ""
    path: str = ""
    repository: str = ""
    licence: str = ""
    overrides: str = ""


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


_RULERS = rules(
    (r"(?m)^\s{0,200}[-=*~#/]{4,}[ \t]*\n[^\n]*\n[ \t]*[-=*~#/]{4,}[ \t]*$", "")
)  # a title between two rulers

_HTML_BLOCKS = rules(
    (r"<!--(?s:.*?)(?:-->|\Z)", ""),
    (r"(?i)<(pre|table|script|style|blockquote)\b[^>]*>(?s:.*?)(?:</\1>|\Z)", "\n\n"),
    (r"(?i)<h[1-6]\b[^>]*>[^<]*</h[1-6]>|<hr\s*/?>", "\n\n"),
    (r"(?i)<(?:li|dt|dd)\b[^<>]*>", "\n\n- "),
    (r"(?i)</?(?:p|ul|ol|dl|div|center|dd|dt|li)\b[^<>]*>|<br\s*/?>", "\n\n"),
)
_HTML = rules(
    (
        r"(?i)</?(?:a|abbr|acronym|b|big|cite|code|del|dfn|em|font|i|img|kbd|q|s|samp|small|span|strong|sub|sup|"
        r"tt|u|var)(?:\s[^<>]*)?/?>",
        "",
    )
)

# {@link Type#member label} becomes the label, or Type.member without a label; {@code x} becomes x.
_LINK = r"\{@(?:link|linkplain|linkcode|see|tutorial|value)\s+"
_BRACED = rules(
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

_RST_BLOCKS = rules(
    (r"(?m)^([ \t]*)\.\.[ \t].*(?:\n(?:[ \t]*\n)*\1[ \t]+\S.*)*", ""),  # directives and comments
    (r"(?m)^[ \t]*>>>(?:.*\S.*\n?)+", "\n"),
    (r"(?m)(::)[ \t]*\n[ \t]*\n(?:[ \t]+\S.*\n?|[ \t]*\n)+", "\\1\n\n"),
)
_RST = rules(
    (r"(?::[a-z]+)?:[a-z]+:`([^`<]+?)\s*<[^`<>]*>`", r"\1"),
    (r"(?::[a-z]+)?:[a-z]+:`~(?:[\w.]+\.)?([^`.]+)`", r"\1"),
    (r"(?::[a-z]+)?:[a-z]+:`[!.]?([^`]+)`", r"\1"),
    (r"`([^`<]+?)\s*<[^`<>]*>`__?", r"\1"),
    (r"``(?=\S)(.+?)(?<=\S)``", r"\1"),
    (r"`([^`]+)`(?:__?)?", r"\1"),
    (r"\s*\[(?:\d+|#\w*|[A-Z]\w+)\]_", ""),
    (r"(?<!\w)\|(\w[\w. ]*)\|(?!\w)", r"\1"),
    (r"\[([^\[\]]+)\]\([^()\s]+\)", r"\1"),
    *EMPHASIS,
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

_RDOC_BLOCKS = rules(
    (
        r"(?m)^[ \t]*:?(?:call-seq|nodoc|startdoc|stopdoc|yields|args|method|singleton-method):"
        r".*(?:\n[ \t]+\S.*)*",
        "",
    ),
    (r"(?m)^([:\w]\S*)[ \t]*::[ \t]", r"- \1: "),
)
_RDOC = rules(
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
_GO = rules((r"\[\*?([\w./]+)\]", r"\1"))

_TAGS = re.compile(r"(?m)^[ \t]*@[A-Za-z]|(?<=[.;] )@[a-z]")
_JAVADOC = Dialect(_TAGS, FENCES + _HTML_BLOCKS, _BRACED + _HTML + MARKDOWN)
_JSDOC = Dialect(_TAGS, _JAVADOC.blocks, _JAVADOC.inline, code_indent=4)

DIALECTS = {
    "go": Dialect(blocks=_RULERS + FENCES, inline=MARKDOWN + _GO, code_indent=1),
    "java": _JAVADOC,
    "javascript": _JSDOC,
    "php": _JSDOC,
    "python": Dialect(re.compile(_PYTHON_ENDS), _RST_BLOCKS + FENCES, _RST),
    "ruby": Dialect(
        re.compile(_RUBY_ENDS),
        _RULERS + _RDOC_BLOCKS + FENCES + _HTML_BLOCKS,
        _RDOC + _HTML + MARKDOWN,
        code_indent=2,
    ),
    "typescript": _JSDOC,
    "cpp": _JSDOC,  # Doxygen has the same tags
}


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text with paragraphs, which empty lines divide."""
    for paragraph in re.split(r"\n\s*\n", text):
        rest = paragraph.strip()
        while rest:
            sentence = first_sentence(rest)
            yield sentence
            rest = rest[len(sentence) :].lstrip()


def first_sentence(paragraph: str) -> str:
    """Return the first sentence of a paragraph; the whole paragraph if no end of a sentence is found.

    Examples:
        >>> first_sentence("Rounds, e.g. to 1.5. Never fails.")
        'Rounds, e.g. to 1.5.'
    """
    return paragraph[: next(sentence_ends(paragraph), len(paragraph))]


LONGEST = 10_000  # characters that are read; the time of the rules grows faster than the length
NARROW = 60  # characters; authors do not break lines before this width
# Tags such as @private, then the prose.
_LEADING = re.compile(r"\A(?:\s*+@[^\n]*\n)++[ \t]*\n(?=\s*[A-Za-z])")
_DESCRIPTION = re.compile(r"(?m)^[ \t]*[@\\](?:brief|desc(?:ription)?|summary|details)\b[ \t]*")
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
        if not line.strip() or HEADING.match(line):
            blocks.append([])
        elif ITEM.match(line):
            blocks.append([ITEM.sub("", line, count=1)])
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


def _plain(block: str, inline: Rules) -> str:
    """Remove the markup of a paragraph, and put the paragraph on one line."""
    # Most paragraphs have no markup.
    if _MARKED.search(block):
        for pattern, new in inline:
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
