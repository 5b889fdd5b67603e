"""The words by which a comment admits technical debt."""

import pytest

from simllm.code.satd_mining.comment_to_function import FileComment
from simllm.code.satd_mining.todo_comments import admits_debt, debt_lines, may_admit_debt


def comment(word):
    text = f"# {word} subtract the discount"
    return FileComment(text, 0, len(text), True)


@pytest.mark.parametrize(
    "word",
    "TODO todo: Todo(me) TODOs #todo autotodo FIXME! fixme_later HACK hacky @hack shack XXX xxx:".split(),
)
def test_words_that_admit_debt(word):
    code = f"def f():\n    {comment(word).text}\n    return 1".encode()
    assert admits_debt(comment(word))
    assert may_admit_debt(code)
    assert debt_lines(code) == {comment(word).text.encode(): 1}


@pytest.mark.parametrize("word", ["to do", "mastodons", "XXXL", "axxx", "afixmes", "whacks", "NOTE"])
def test_words_that_do_not(word):
    assert not admits_debt(comment(word))
