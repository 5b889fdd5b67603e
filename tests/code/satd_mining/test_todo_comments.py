"""The words by which a comment admits technical debt."""

import pytest

from simllm.code.satd_mining.comments import (
    FileComment,
    admits_debt,
    debt_lines,
    may_admit_debt,
    words_of_debt,
)


def comment(word):
    text = f"# {word} subtract the discount"
    return FileComment(text, 0, len(text), True)


@pytest.mark.parametrize(
    "word",
    "TODO todo: Todo(me) @todo #todo //TODO TODO-12 FIXME! HACK @hack XXX xxx: TODO\u4fee\u6b63".split(),
)
def test_words_that_admit_debt(word):
    code = f"def f():\n    {comment(word).text}\n    return 1".encode()
    assert admits_debt(comment(word))
    assert may_admit_debt(code)
    assert debt_lines(code) == {comment(word).text.encode(): 1}


@pytest.mark.parametrize(
    "word",
    "mastodons XXXL axxx afixmes whacks NOTE todos TODOs ToDoList hacky metodo m\u00e9todo me\u0301todo "
    "todo\u00f1 autotodo fixme_later _todo TODO2 shack HACKATHON".split(),
)
def test_words_that_do_not(word):
    assert not admits_debt(comment(word))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("// TODO", 1), ("// TODO: two", 2), ("// TODO: return two", 3), ("// sums the rows\n// TODO", 1),
        ("// TODO\n// sums the rows", 1), ("/*\n * sums the rows\n * FIXME: handle errors\n */", 3),
        ("# TODO\n# XXX breaks on names with blanks", 6), ("# sums the rows", 0),
    ],
)  # fmt: skip
def test_words_are_counted_on_the_line_of_the_debt(text, words):
    assert words_of_debt(FileComment(text, 0, len(text), True)) == words
