"""Pass rates of generated code, with several attempts for each programming task (item).

TOP-k, also called pass@k, and AVG-k have these names in the paper on the program-repair method CREF (Yang
et al., 2024). For each item, `passed` says of each attempt whether it passed the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

from simllm.errors import InputError


def pass_at_k(passed: Sequence[Sequence[bool]], k: int) -> float:
    """Estimate pass@k: the probability that at least one of k attempts passes, averaged over items.

    If c of an item's n attempts passed, the estimate is 1 - C(n - c, k) / C(n, k) (Chen et al., "Evaluating
    large language models trained on code", 2021). Fewer than k attempts of an item are an `InputError`.
    """
    fewest = min(map(len, passed))
    if fewest < k:
        raise InputError(f"TOP-{k} needs {k} candidates of each item; an item has {fewest}")
    shares = [comb(len(attempts) - sum(attempts), k) / comb(len(attempts), k) for attempts in passed]
    return 1 - sum(shares) / len(shares)


def average_pass_rate(passed: Sequence[Sequence[bool]]) -> float:
    """Compute AVG-k: the share of an item's attempts that passed, averaged over items."""
    if not all(map(len, passed)):
        raise InputError("AVG-k needs a candidate of each item; an item has none")
    return sum(sum(attempts) / len(attempts) for attempts in passed) / len(passed)
