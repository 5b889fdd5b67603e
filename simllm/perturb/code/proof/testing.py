"""Proofs of many cases in both languages, in batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from itertools import islice
from typing import Any

from simllm.errors import InputError
from simllm.execution import Sandbox
from simllm.execution.toolchains import find_toolchain
from simllm.execution.watchdog import as_ended
from simllm.perturb.code.proof.arguments import require_hypothesis
from simllm.perturb.code.proof.java import prepare_java
from simllm.perturb.code.proof.python import prepare_python
from simllm.perturb.code.proof.verdicts import Proof, ProofCase, Prover

_BATCH = 64  # cases; more make no difference to the speed
_LANGUAGES: dict[str, Callable[[Sequence[ProofCase], int, int, int], Prover]] = {
    "java": prepare_java,
    "python": prepare_python,
}


def prove(
    cases: Iterable[ProofCase],
    sandbox: Sandbox,
    *,
    inputs: int = 64,
    mutants: int = 2,
    seed: int = 0,
    parallel: int = 1,
) -> Iterator[Proof]:
    """Run functions and their variants on the same random inputs, and yield a proof for each case in order.

    Both sides must agree on the result, the class of an exception, the printed text, and the arguments after
    the call; in Java also on the fields of the function's object or class, in Python on the global variables.
    An input is left out if two calls of the original differ on it, or if the original needs more than 0.025 s
    of processor time or too much memory for it. In Python, it is also left out if the original raises
    TypeError or AttributeError (the input probably has the wrong types), or NameError or ImportError (other
    code is missing).

    Args:
        cases: The cases. They are read and run in batches.
        sandbox: The sandbox in which the functions run.
        inputs: The largest number of inputs for each function.
        mutants: The largest number of mutants for each function.
        seed: The random seed of inputs and mutants.
        parallel: The number of batches that run at the same time. It does not change the results.

    Raises:
        InputError: A language is unknown, or its tools are not installed.
        SandboxError: The sandbox failed.
    """
    require_hypothesis()
    waiting: deque[Future[list[Proof]]] = deque()
    remaining = iter(cases)
    with ThreadPoolExecutor(parallel) as threads:
        while True:
            batch = list(islice(remaining, _BATCH))
            if batch:
                # Prepared in this thread: `ast.parse` of Python 3.11 fails in two threads at a time.
                waiting.append(threads.submit(_prepare(batch, inputs, mutants, seed), sandbox))
            # The oldest batch is awaited first, which keeps the order, while the others run.
            while waiting and (not batch or len(waiting) > parallel):
                (oldest,) = as_ended([waiting.popleft()])
                yield from oldest.result()
            if not batch:
                return


def _prepare(batch: Sequence[ProofCase], inputs: int, mutants: int, seed: int) -> Prover:
    """Draw the inputs and mutants of a batch; the result runs the batch in a sandbox."""
    provers: list[tuple[list[int], Prover]] = []
    for language in sorted({case.language for case in batch}):
        if language not in _LANGUAGES:
            raise InputError(f"cannot prove {language!r}; expected one of {', '.join(_LANGUAGES)}")
        # Missing tools are reported before any code runs.
        find_toolchain(language)
        numbers = [number for number, case in enumerate(batch) if case.language == language]
        provers.append((numbers, _LANGUAGES[language]([batch[n] for n in numbers], inputs, mutants, seed)))

    def prove_batch(sandbox: Sandbox) -> list[Proof]:
        proofs: dict[int, Proof] = {}
        for numbers, prover in provers:
            proofs |= dict(zip(numbers, prover(sandbox), strict=True))
        return [proofs[number] for number in range(len(batch))]

    return prove_batch


Row = dict[str, Any]


def prove_variants(
    rows: Iterable[tuple[dict[str, Any], dict[str, Any]]],
    sandbox: Sandbox,
    *,
    seed: int = 0,
    parallel: int = 1,
) -> Iterator[dict[str, Any]]:
    """Prove the rewritten variants among rows of `vary_items`, and yield all rows in order.

    Each row comes with its item, which has the original code as `source`, and code that it needs to run as
    `around`. A row with the status "rewritten" gets a `proof`. If the proof refutes it, its status is
    "refuted", and only `id`, `language`, `arm` and `variant` are kept.

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
                named = (row.get(key) for key in ("id", "arm", "variant"))
                name = " ".join(str(part) for part in named if part is not None)
                around = str(item.get("around") or "")
                yield ProofCase(name, row["language"], item["source"], row["text"], row["names"], around)

    for proof in prove(cases(), sandbox, seed=seed, parallel=parallel):
        while not waiting[0][1]:
            yield waiting.popleft()[0]
        yield _with_proof(waiting.popleft()[0], proof)
    yield from (row for row, _ in waiting)


def _with_proof(row: Row, proof: Proof) -> Row:
    """Return the row with its proof; a refuted row loses its variant."""
    found = {name: value for name, value in asdict(proof).items() if name != "id" and value not in ("", None)}
    if proof.power is not None:
        found["power"] = proof.power
    if proof.verdict == "refuted":
        # A wrong variant must not be used by mistake.
        kept = {name: row[name] for name in ("id", "language", "arm", "variant") if name in row}
        return kept | {"status": "refuted", "proof": found}
    return row | {"proof": found}
