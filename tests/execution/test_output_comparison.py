"""Comparison of program outputs: examples of the four modes, and properties that hold for all outputs."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm.errors import InputError
from simllm.execution.output_comparison import comparison

MODES = ["lines", "tokens", "exact", "float:1e-6"]


@pytest.mark.parametrize(
    ("mode", "expected", "actual", "verdict"),
    [
        ("lines", b"1\n2\n", b"1 \t\r\n2\n\n\n", "AC"),
        ("lines", b"1\n2\n", b"1\n\n2\n", "PE"),
        ("lines", b"1\n2\n", b"\n1\n2\n", "PE"),
        ("lines", b"1\n", b" 1\n", "PE"),
        ("lines", b"12\n", b"1 2\n", "PE"),
        ("lines", b"1\n", b"1.0\n", "WA"),
        ("lines", b"", b" \n\n", "AC"),
        ("lines", b"1", b"", "WA"),
        ("lines", "caf\u00e9".encode(), "cafe\u0301".encode(), "WA"),
        ("tokens", b"1 2\n3", b"1\n2   3\n", "AC"),
        ("tokens", b"1 2", b"12", "PE"),
        ("tokens", b"a", b"A", "WA"),
        ("exact", b"1\n", b"1", "PE"),
        ("exact", b"1\n", b"1\n", "AC"),
        ("float:1e-6", b"0.333333 x", b"0.3333334\nx", "AC"),
        ("float:1e-6", b"0.333333", b"0.33334", "WA"),
        ("float:1e-6", b"1000000", b"1e6", "AC"),
        ("float:1e-6", b"1000000", b"1000000.9", "AC"),
        ("float:1e-6", b"1000000", b"1000001.1", "WA"),
        ("float:1e-6", b"0", b"-0.0", "AC"),
        ("float:1e-6", b"nan", b"nan", "AC"),
        ("float:1e-6", b"1", b"nan", "WA"),
        ("float:1e-6", b"1", b"1e999", "WA"),
        ("float:1e-6", b"1e999", b"5", "WA"),
        ("float:1e-6", b"7" * 400, b"7" * 399 + b"8", "WA"),
        ("float:1e-6", b"7" * 400, b"7" * 400, "AC"),
        ("float:1e-6", b"10", b"1_0", "WA"),
        ("float:1e-6", b"1 2", b"12", "PE"),
        ("float:0", b"1.50", b"1.5", "AC"),
        ("float:1e-6", b"[1.5, 2]", b"[1.4999999999, 2.0000001]", "AC"),
        ("float:1e-6", b"[1.5, 2]", b"[1.5, 2.1]", "WA"),
        ("float:1e-6", b"[1.5, 2]", b"(1.5, 2)", "WA"),
        ("float:1e-6", b"{'a':.5}", b"{'a':0.50}", "AC"),
        ("float:1e-6", b"x=-3.", b"x=-3.0000001", "AC"),
        ("float:1e-6", b"It is 2.5.", b"It is 2.50000001.", "AC"),
        ("float:0.5", b"x1 1.2.3 1_0 0x10", b"x1 1.2.3 1_0 0x10", "AC"),
        ("float:0.5", b"x1", b"x1.1", "WA"),
        ("float:0.5", b"1.2.3", b"1.2.4", "WA"),
        ("float:0.5", b"1_0", b"1_1", "WA"),
        ("float:9", b"1,2", b"1,2,3", "WA"),
        ("float:9", b"1 2", b"1 2 3", "WA"),
    ],
)
def test_verdicts(mode, expected, actual, verdict):
    assert comparison(mode)(expected, actual) == verdict


@given(st.binary(), st.sampled_from(MODES))
def test_an_output_is_equal_to_itself(output, mode):
    assert comparison(mode)(output, output) == "AC"


@given(st.binary(), st.binary())
def test_later_modes_accept_less(expected, actual):
    """In the order `exact`, `lines`, `tokens`, `float:0`, each mode accepts all that earlier modes accept."""
    accepted = [
        comparison(mode)(expected, actual) == "AC" for mode in ("exact", "lines", "tokens", "float:0")
    ]
    assert accepted == sorted(accepted)


@given(st.lists(st.sampled_from([b"1", b"2.5", b"x"])), st.sampled_from(MODES), st.data())
def test_white_space_alone_is_never_a_wrong_answer(words, mode, data):
    def spread():
        gap = st.sampled_from([b"", b" ", b"\n", b"\r\n", b"\t"])
        return b"".join(word + data.draw(gap) for word in words)

    assert comparison(mode)(spread(), spread()) in ("AC", "PE")


@pytest.mark.parametrize(
    "mode", ["", "line", "float", "float:", "float:x", "float:-1", "float:nan", "float:inf"]
)
def test_rejects_unknown_modes(mode):
    with pytest.raises(InputError, match=r"comparison .*: expected"):
        comparison(mode)


@pytest.mark.parametrize(
    "part", [b"1", b"1.", b".1", b"+1", b"1e", b"1e+1", b"1,", b"1 ", b"-", b".", b"1e-1x"]
)
@pytest.mark.parametrize("mode", ["tokens", "float:1e-6"])
def test_the_time_is_linear_in_the_length(part, mode):
    """An expression that tries all places of a long word would take hours."""
    long = part * (200_000 // len(part))
    for expected, actual in [(b"1", long + b"x"), (long + b"y", long + b"x"), (b"2" * len(long), long)]:
        begun = time.process_time()
        assert comparison(mode)(expected, actual) in ("WA", "PE")
        assert time.process_time() - begun < 2
