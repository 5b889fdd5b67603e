"""Test of whether rewritten code from JSON-lines files behaves like the original code.

The original code and the rewritten code (the variant) are run on the same inputs, and their behaviour is
compared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from simllm.execution import Sandbox
from simllm.perturb.code.proof.differential_testing import prove
from simllm.perturb.code.proof.proof_case import ProofCase
from simllm.perturb.code.proof.proof_verdict import Proof

Row = dict[str, Any]


def prove_variants(
    rows: Iterable[tuple[dict[str, Any], dict[str, Any]]],
    sandbox: Sandbox,
    *,
    seed: int = 0,
    parallel: int = 1,
) -> Iterator[dict[str, Any]]:
    """Run rewritten variants of code and their originals on the same inputs, and compare their behaviour.

    Args:
        rows: Pairs (item, row) of two dicts. The item has the original code under the key `source`. Under the
            optional key `around`, it has further code that the original needs to run. The row comes from
            `vary_items`. If its `status` is "rewritten", it has the variant under the key `text`.
        sandbox: The sandbox in which the functions run.
        seed: The seed of the random inputs.
        parallel: The number of batches of functions that run at the same time.

    Yields:
        The rows, in the given order. A row with the status "rewritten" gets the outcome of the comparison
        under the key `proof`. If the variant does not compile or behaves differently, the status becomes
        "refuted", and the other keys except `id`, `language` and `arm` are removed. A row with another status
        has no variant to run, and stays as it is.

    Raises:
        InputError: A compiler is missing, or hypothesis is not installed.
        SandboxError: The sandbox failed.
    """
    waiting: deque[tuple[Row, bool]] = deque()

    def cases() -> Iterator[ProofCase]:
        for item, row in rows:
            is_rewritten = row["status"] == "rewritten"
            waiting.append((row, is_rewritten))
            if is_rewritten:
                name = " ".join(filter(None, [row["id"], row.get("arm")]))
                around = str(item.get("around") or "")
                yield ProofCase(name, row["language"], item["source"], row["text"], row["names"], around)

    for proof in prove(cases(), sandbox, seed=seed, parallel=parallel):
        while not waiting[0][1]:
            yield waiting.popleft()[0]
        yield _with_proof(waiting.popleft()[0], proof)
    yield from (row for row, _ in waiting)


def _with_proof(row: Row, proof: Proof) -> Row:
    """Add a test result to the dict (row) that describes a piece of rewritten code.

    The test runs the original and the rewritten code, and shows whether they behave the same.

    Args:
        row: The dict that describes the rewritten code.
        proof: The result of the test.

    Returns:
        A new dict, which has the result under the key `proof`. If the rewritten code does not compile or
        behaves differently, the `status` is "refuted", and only the `id`, `language` and `arm` of the row are
        kept.
    """
    found = {name: value for name, value in asdict(proof).items() if name != "id" and value not in ("", None)}
    if proof.power is not None:
        found["power"] = proof.power
    if proof.verdict == "refuted":
        kept = {name: row[name] for name in ("id", "language", "arm") if name in row}
        return kept | {"status": "refuted", "proof": found}
    return row | {"proof": found}
