"""Variants of code, each with evidence from execution that it behaves like its original."""

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
    """Run each rewritten variant beside its original, and yield its row with the verdict.

    The verdict stands under the key `proof`. A variant that behaves differently is withheld: its row has the
    status "refuted" and the proof, but neither the variant's text nor its edits.

    Args:
        rows: Pairs of an item and the row of its variant. `vary_items` yields such rows. An item may have the
            key `around`: code that its function needs to run.
        sandbox: The sandbox in which the functions run.
        seed: The seed for drawing the inputs.
        parallel: The number of batches that run at the same time.

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
    """Return the row of a variant with its proof.

    If the proof refutes the variant, its text and edits are removed from the row.
    """
    found = {name: value for name, value in asdict(proof).items() if name != "id" and value not in ("", None)}
    if proof.power is not None:
        found["power"] = proof.power
    if proof.verdict == "refuted":
        kept = {name: row[name] for name in ("id", "language", "arm") if name in row}
        return kept | {"status": "refuted", "proof": found}
    return row | {"proof": found}
