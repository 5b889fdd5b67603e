"""Strict loading of dataclasses: all problems are reported together."""

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from simllm.errors import InputError
from simllm.io.reading import build
from train.pretrain.config import PretrainConfig


def test_all_config_problems_are_reported_together():
    with pytest.raises(InputError) as error:
        build(
            PretrainConfig, {"out": "x", "sede": 1, "corpus": {"sources": "a"}, "updates": "many"}, "c.yaml"
        )
    message = str(error.value)
    for part in (
        "c.yaml: ",
        "unknown key sede",
        "missing key seed",
        "corpus.sources must be a list, not 'a'",
        "updates must be of type int, not 'many'",
        "missing key packing",
    ):
        assert part in message
    assert "\n" not in message


@dataclass(frozen=True)
class Inner:
    size: int


@dataclass(frozen=True)
class Outer:
    inner: Inner | None = None
    texts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


def test_an_optional_part():
    assert build(Outer, {}, "c") == build(Outer, {"inner": None}, "c") == Outer()
    assert build(Outer, {"inner": {"size": 3}}, "c") == Outer(Inner(3))
    with pytest.raises(InputError, match=r"unknown key inner\.sise; missing key inner\.size"):
        build(Outer, {"inner": {"sise": 3}}, "c")


def test_the_values_of_a_mapping():
    assert build(Outer, {"texts": {"a": ["b", "c"]}, "facts": {"d": [1]}}, "c") == Outer(
        None, {"a": ("b", "c")}, {"d": [1]}
    )
    with pytest.raises(InputError) as error:
        build(Outer, {"texts": {"a": "b", "e": [1], "f\n": None}, "facts": []}, "c")
    assert str(error.value) == (
        "c: texts.a must be a list, not 'b'; texts.e[0] must be of type str, not 1; "
        "texts.'f\\n' must be a list, not None; facts must be of type dict, not []"
    )


@dataclass(frozen=True)
class Choice:
    name: Literal["a", "b", "c"]
    size: int = 1

    def __post_init__(self):
        if self.size < 1:
            raise InputError("size must be positive")


def test_a_choice_of_names():
    assert build(Choice, {"name": "b"}, "c") == Choice("b")
    for wrong in ("d", 7, None, ["a"]):
        with pytest.raises(InputError) as error:
            build(Choice, {"name": wrong, "size": 0}, "f")
        assert str(error.value) == f"f: name must be a, b or c, not {wrong!r}; size must be positive"
