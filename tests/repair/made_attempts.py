"""Attempts to repair a program, made for the tests of figures."""

from simllm.code.tree_distance import PatchSize
from simllm.repair.results import AttemptResult, RoundResult


def attempt(item, number, accepted, rounds=1, patch=None, fix=None, tokens=(10, 7), **rest):
    """Make an attempt whose last round is accepted or not."""
    made = tuple(
        RoundResult(n, (), "", "", "AC" if accepted and n == rounds else "WA", accepted and n == rounds,
                    prompt_tokens=tokens[0], completion_tokens=tokens[1])
        for n in range(1, rounds + 1)
    )  # fmt: skip
    sizes = [None if edits is None else PatchSize(edits, 10, 10) for edits in (patch, fix)]
    return AttemptResult(item, number, made, (), rest.get("open"), *sizes)
