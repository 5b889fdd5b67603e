import doctest

import pytest

from train.corpus import comments, extract

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
