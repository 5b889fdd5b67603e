import re
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm.code.languages import language as language_module
from simllm.code.languages.language import LANGUAGE_OF_SUFFIX
from train.corpus.extract import extract


def javadoc(comment, method="void run() { }"):
    return f"class Runner {{\n/**\n * {comment}\n */\n{method}\n}}\n".encode()


DROPPED = [
    ("test", "Checks the sum.", "void testSum() { }"),
    ("test", "Checks the sum.", "@Test public void sum() { }"),
    ("inherited", "{@inheritDoc}", "void run() { }"),
    ("inherited", "(non-Javadoc)\n * @see java.lang.Runnable#run()", "void run() { }"),
    ("inherited", "Implements Runnable.", "void run() { }"),
    ("no prose", "@return the foo", "int run() { }"),
    ("licence", "Copyright 2020 Somebody.", "void run() { }"),
    ("deprecated", "Deprecated: use that.", "void run() { }"),
    ("deprecated", "This method is deprecated.", "void run() { }"),
    ("template", "Auto-generated method stub", "void run() { }"),
    ("to do", "TODO: say what it does", "void run() { }"),
    ("to do", "FIXME this is slow", "void run() { }"),
    ("accessor", "Getter for foo.", "int getFoo() { }"),
    ("see also", "See {@link Other#run()}.", "void run() { }"),
    ("see also", "(see Other#run)", "void run() { }"),
    ("code", "int x = run(3);", "void run() { }"),
    ("unfinished", "Scal computes\n *\n * <pre>x = a*x</pre>", "void run() { }"),
    ("not English", "Gibt den Namen der Klasse zurück.", "void run() { }"),
    ("fewer than two words", "Constructor.", "Runner() { }"),
    ("too long", "Runs it" + "\n * and it" * 150, "void run() { }"),
]


@pytest.mark.parametrize(("name", "comment", "method"), DROPPED)
def test_unusable_comments_are_dropped_counted_and_shown(name, comment, method):
    dropped, shown = Counter(), []
    found = list(extract(javadoc(comment, method), "java", dropped, lambda *what: shown.append(what)))
    assert (found, dict(dropped)) == ([], {name: 1})
    assert [name for name, text in shown if comment in text] == [name]


@pytest.mark.parametrize(
    ("comment", "summary"),
    [
        ("Gets the foo.", "Gets the foo."),
        ("Like {@code run} but faster.", "Like run but faster."),
        ("Writes the copyright line.", "Writes the copyright line."),
        ("Returns the given text as is", "Returns the given text as is"),
        ("Finds what is deprecated.", "Finds what is deprecated."),
        ("Runs, see {@link Thread}:", "Runs, see Thread"),
    ],
)
def test_comments_that_resemble_unusable_ones_are_kept(comment, summary):
    assert [c.summary for c in extract(javadoc(comment), "java", Counter())] == [summary]


@pytest.mark.parametrize(
    "comment",
    [
        "/** Keeps it. */",
        "/**\n * Keeps it.\n */",
        "/**\n\n   Keeps it.\n\n   @public\n*/",
        "/**\n * @public\n *\n   Keeps it.\n*/",
        "/** Keeps it. @public */",
    ],
)
def test_leading_stars_are_stripped(comment):
    code = f"{comment}\nfunction keep() {{}}\n".encode()
    assert [c.summary for c in extract(code, "javascript", Counter())] == ["Keeps it."]


def test_stars_that_are_bullets_stay_list_items():
    code = b"/**\n  Keeps all.\n\n  * this one\n  * that one\n*/\nfunction keep() {}\n"
    (comment,) = extract(code, "javascript", Counter())
    assert comment.description == "Keeps all.\n\nthis one\n\nthat one"


def test_description_continues_after_the_summary():
    code = javadoc("Runs it. Slowly,\n * but well.\n * <p>\n * See there.\n * @since 1")
    (comment,) = extract(code, "java", Counter())
    assert comment.summary == "Runs it."
    assert comment.description == "Runs it. Slowly, but well.\n\nSee there."


# Pieces of code that several languages share, and noise.
PIECES = [
    *('"""', "'''", "/**", "*/", "//", "#", "/*", "=begin\n", "=end\n", "\n", "\n\n", "  ", "\t", ":", "::"),
    *("def f():", "def f", "end", "func F() {}", "function f() {}", "void f() {}", "class A {", "}", "<?php"),
    *(
        "@param a",
        "{@link A#b}",
        "`a`",
        "[a](b)",
        "<p>",
        "</pre>",
        "<pre>",
        "- a",
        "a.",
        "e.g. b",
        "Adds it.",
    ),
    *("Two words", ">>> a", ".. a::", "```", "Args:", "---", "\\", "\0", "é", "\x85", "\u2028"),
]
languages = st.sampled_from(sorted(set(LANGUAGE_OF_SUFFIX.values())))
codes = st.one_of(st.binary(), st.lists(st.sampled_from(PIECES)).map(lambda some: "".join(some).encode()))


@given(codes, languages)
def test_any_bytes_are_accepted(code, language):
    for comment in extract(code, language, Counter()):
        assert comment.summary


@given(st.lists(st.sampled_from([*PIECES, " ", " and ", "so"])).map("".join), st.booleans())
def test_description_starts_with_the_summary(text, lines):
    text = text.replace("*/", "")
    code = f"/** {text} */\nfunction f() {{}}\n" if not lines else "/**\n" + text + "\n*/\nfunction f() {}\n"
    for comment in extract(code.encode(), "javascript", Counter()):
        words = re.findall(r"\w+", comment.summary)
        assert not comment.description or re.findall(r"\w+", comment.description)[: len(words)] == words
        assert "\n" not in comment.summary


# Each text takes minutes if a rule rereads characters.
HOSTILE = [
    ("python", "", "# a:\n", ""),
    ("python", "def f():\n", "#:#", "\n    'Adds two.'\n"),
    ("python", "x = 1", ":#", ""),
    ("python", "class A(", "a", "):\n  def f():\n    'Adds two.'\n"),
    ("python", 'def f():\n  """Adds two. ', "\n", '"""\n'),
    ("javascript", "/** Adds two. */", "a.", "b = function () {}"),
    ("javascript", "/** Adds two. ", "*", "*\n*/\nfunction f() {}"),
    ("javascript", "/** Adds ", "`", "\n*/\nfunction f() {}"),
    ("javascript", "/** a", ".", "\n*/\nfunction f() {}"),
    ("typescript", "", "/** a */", ""),
    ("java", "", "class A { /** Adds it. */ void f() {}", ""),
    ("go", "package a\n// Adds two.", " ", "\nfunc F() {}\n"),
    ("ruby", "# Adds two.\n", "#\n", "#\ndef f; end\n"),
    ("php", "<?php\n", "/** a */\n", ""),
]


@pytest.mark.parametrize(("language", "before", "piece", "after"), HOSTILE)
def test_hostile_code_takes_linear_time(language, before, piece, after):
    code = before + piece * (200_000 // len(piece)) + after
    code += "\n" * (len(code) // 190)  # shorter lines, because long lines do not count as code
    started = time.process_time()
    list(extract(code.encode(), language, Counter()))
    assert time.process_time() - started < 20


def test_file_that_parses_too_slowly_is_skipped(monkeypatch):
    monkeypatch.setattr(language_module, "LONGEST_PARSE", 0.5)
    hostile = b"def f():\n" + b"#\n" * 100_000 + b"    'Adds two.'\n"
    started = time.process_time()
    with pytest.raises(TimeoutError, match="parsing took more than"):
        list(extract(hostile, "python", Counter()))
    assert time.process_time() - started < 20
    good = b"def f():\n    'Adds two.'\n"
    assert [c.summary for c in extract(good, "python", Counter())] == ["Adds two."]
