"""Requests for runs in the sandbox, and the outcomes of the runs, pass through pipes unchanged."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm.execution.limits import Limits
from simllm.execution.messages import (
    Outcome,
    Request,
    SandboxError,
    receive_outcome,
    receive_request,
    send_outcome,
    send_request,
)

NAMES = st.text(st.characters(exclude_characters="\0/."), min_size=1)
FILES = st.dictionaries(NAMES, st.binary())


@given(st.lists(st.text()), FILES, st.binary(), st.lists(st.text()))
def test_request(argv, files, stdin, keep):
    request = Request(argv, files, stdin, Limits(time=0.5), keep)
    pipe = io.BytesIO()
    send_request(pipe, request)
    pipe.seek(0)
    assert receive_request(pipe) == request
    with pytest.raises(EOFError):
        receive_request(pipe)


@given(st.integers(0, 255), st.sampled_from([None, "time"]), st.binary(), st.binary(), st.floats(0, 9), FILES)
def test_outcome(status, exceeded, stdout, stderr, seconds, files):
    outcome = Outcome(status, exceeded, stdout, stderr, seconds, 1.5, 12345, files)
    pipe = io.BytesIO()
    send_outcome(pipe, outcome)
    send_outcome(pipe, SandboxError("broken"))
    pipe.seek(0)
    assert receive_outcome(pipe) == outcome
    with pytest.raises(SandboxError, match="broken"):
        receive_outcome(pipe)


@given(st.binary(max_size=60))
def test_cut_messages_are_the_end(data):
    pipe = io.BytesIO()
    send_outcome(pipe, Outcome(0, None, b"out", b"", 0.0, 0.0, 0))
    whole = pipe.getvalue()
    with pytest.raises(EOFError):
        receive_outcome(io.BytesIO(whole[: len(whole) * len(data) // 61]))
