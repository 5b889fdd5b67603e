"""Check of rewritten variants of code: run each variant and its original, and compare their behaviour."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from simllm.execution import Sandbox
from simllm.perturb.code.proof import Proof, ProofCase, prove

Row = dict[str, Any]


def prove_variants(
    rows: Iterable[tuple[dict[str, Any], dict[str, Any]]],
    sandbox: Sandbox,
    *,
    seed: int = 0,
    parallel: int = 1,
) -> Iterator[dict[str, Any]]:
    """Run each rewritten variant and its original on the same inputs, and compare their behaviour.

    Args:
        rows: Pairs of an item and the row of its variant. An item is a dict with the original code under the
            key `source`, and possibly further code that it needs to run under `around`. A row is a dict that
            describes the variant, as `vary_items` yields it.
        sandbox: The sandbox in which the functions run.
        seed: The seed of the random inputs.
        parallel: The number of batches that run at the same time.

    Yields:
        Each row, in the given order. The row of a rewritten variant gets the result of the comparison under
        the key `proof`. If the variant behaves differently, its row has the status "refuted" and the proof,
        but neither the variant's text nor its edits.

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
    """Return the row of a variant, together with the outcome of its comparison.

    Args:
        row: A dict that describes the variant.
        proof: The outcome of comparing the variant with its original.

    Returns:
        A new row with the key `proof`. If the proof refutes the variant, the row lacks the variant's text and
        edits.
    """
    found = {name: value for name, value in asdict(proof).items() if name != "id" and value not in ("", None)}
    if proof.power is not None:
        found["power"] = proof.power
    if proof.verdict == "refuted":
        kept = {name: row[name] for name in ("id", "language", "arm") if name in row}
        return kept | {"status": "refuted", "proof": found}
    return row | {"proof": found}
