"""Prose of documentation comments: paragraphs and first sentences."""

import doctest

import pytest

from train.corpus import comments, extract
from train.corpus.comments import paragraphs

# fmt: off
# ruff: noqa: E501 (one case a line)
CASES = [
    # Javadoc
    ("java", "Returns {@code List<String>} of {@link Map#get(Object)}.", ["Returns List<String> of Map.get(Object)."]),
    ("java", "Like {@link Foo} and {@link #bar(int) the bar}.", ["Like Foo and the bar."]),
    ("java", "A <b>bold</b> &lt;T&gt; step.<p>More.<pre>\ncode();\n</pre>", ["A bold <T> step.", "More."]),
    ("java", "Takes these:\n<ul>\n<li>one\n<li>two\n</ul>", ["Takes these:", "one", "two"]),
    ("java", "Adds it.\n@param a the first\n@return the sum", ["Adds it."]),
    ("java", "@return the sum", []),
    ("java", "{@inheritDoc}", []),
    # JSDoc, PHPDoc
    ("javascript", "Uses [the map]{@link Map} or [docs](http://a.b/c_(d)).", ["Uses the map or docs."]),
    ("javascript", "@private\n\nHides it away.\n@param {number} a", ["Hides it away."]),
    ("javascript", "@function\n@description Shows it.\nAgain.\n@returns {void}", ["Shows it. Again."]),
    ("javascript", "Does it:\n```js\nit();\n```\nand more.", ["Does it:", "and more."]),
    ("typescript", "Keeps snake_case and __init__ and 2 * 3 * 4.", ["Keeps snake_case and init and 2 * 3 * 4."]),
    ("php", "get_key()\n\nReturns the **current** `$key`.", ["Returns the current $key."]),
    ("javascript", "Sets a part of it\nIndexes start at zero.", ["Sets a part of it", "Indexes start at zero."]),
    ("javascript", "Turns it into a\nString and the\nDate", ["Turns it into a String and the Date"]),
    ("javascript", "> Quoted words.", ["Quoted words."]),
    # Go
    ("go", "Add adds.\n\n\tx := Add(1, 2)\n\nSee [Sub] and [strings.Builder].", ["Add adds.", "See Sub and strings.Builder."]),
    ("go", "Add adds.\n\n# More\n\nIt is fast.", ["Add adds.", "It is fast."]),
    # RDoc, YARD, TomDoc
    ("ruby", "Public: Gets the +name+ of {the user}[rdoc-ref:User].\n\nReturns the name.", ["Gets the name of the user."]),
    ("ruby", "call-seq:\n  a.b -> c\n\nJoins {Foo::Bar#baz} and {Qux a qux}.", ["Joins Foo::Bar#baz and a qux."]),
    ("ruby", "Joins.\n\n  a.join(b)\n\n@param [String] a", ["Joins."]),
    ("ruby", "Lists them, with:\n  list :a\nand others.", ["Lists them, with:", "and others."]),
    ("ruby", "----\nHelpers\n----\nJoins.", ["Joins."]),
    ("ruby", "== Title\nJoins <tt>a</tt>.", ["Joins a."]),
    # reStructuredText, Google, NumPy, Epytext
    ("python", "Open :class:`~a.b.File` by :meth:`the way <a.way>`.", ["Open File by the way."]),
    ("python", "Use ``x`` or `y`_ [1]_.\n\n:param x: an x\n:returns: y", ["Use x or y."]),
    ("python", "Add it.\n\nArgs:\n    a: one\n\nReturns:\n    sum", ["Add it."]),
    ("python", "Add it.\n\nParameters\n----------\na : int", ["Add it."]),
    ("python", "Add it.\n\n.. versionadded:: 1.2\n   Long ago.\n\nAlways.", ["Add it.", "Always."]),
    ("python", "Add it.\n\n>>> add(1)\n2\n\nAlways and ever::\n\n    add()\n\nNever.", ["Add it.", "Always and ever:", "Never."]),
    ("python", "Add it.\n@param a: one\n@return: sum", ["Add it."]),
]
# fmt: on


@pytest.mark.parametrize(("language", "text", "expected"), CASES)
def test_markup_is_removed(language, text, expected):
    assert paragraphs(text, language) == expected


SENTENCES = [
    "Adds two numbers.",
    "Rounds, e.g. to 1.5 or v2.0, i.e. not much.",
    "Calls foo.bar() and a.b.c before www.example.com/x.html is read.",
    "Takes ints, floats etc. and adds them.",
    "Waits... then goes on.",
    "Sorts (see Knuth vol. 3) the list.",
    "Implements the method of J. Doe.",
    "Strips '..', '.' and '/' characters.",
    "Takes the args. and more.",
    "Creates it from the args.",
    "Is it there?",
    'Says "no."',
    "Never ends",
]


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("rest", ["", " Returns None.", " `x` is kept.", " (Slowly.)"])
def test_end_of_the_first_sentence(sentence, rest):
    if sentence == "Never ends":
        rest = ""
    assert comments.first_sentence(sentence + rest) == sentence


@pytest.mark.parametrize("module", [comments, extract])
def test_first_sentences(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Returns the name of a user.", True),
        ("Resize", True),
        ("Convert to naïve café names", True),
        ("Devuelve el nombre del usuario que está en la lista.", False),
        ("Retourne le nom de la classe avec une virgule.", False),
        ("获取用户的名称", False),
        ("Возвращает имя пользователя", False),
    ],
)
def test_english_is_recognised(text, expected):
    assert extract.is_english(text) is expected
