"""Comparison of many variants (rewritten functions) with their originals by running both."""

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
    """Run functions and their variants on the same random inputs, and compare their behaviour.

    The arguments are random values of the parameters' types, partly from the library hypothesis. The original
    and the variant must agree on the result, the class of an exception, the printed text, and the arguments
    after the call. In Java, they must also agree on the fields of the function's object or class, and in
    Python on the global variables.

    An input is left out if two calls of the original behave differently on it, or if the original needs more
    than 0.025 s of processor time or too much memory for it. In Python, an input is also left out if the
    original raises one of these errors: TypeError or AttributeError, because the input probably has the wrong
    types; NameError or ImportError, because other code is probably missing.

    Args:
        cases: The functions and their variants (rewritten versions). They are read and run in batches.
        sandbox: The sandbox in which the functions run.
        inputs: The largest number of inputs for each function.
        mutants: The largest number of mutants for each function. Mutants are variants with a deliberate
            mistake. The share of mutants whose mistake the inputs reveal measures the quality of the inputs.
        seed: The random seed of inputs and mutants.
        parallel: The number of batches that run at the same time. It does not change the results.

    Yields:
        The outcome of the comparison (`Proof`) for each case, in the order of the cases.

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
                waiting.append(threads.submit(_prepare(batch, inputs, mutants, seed), sandbox))
            while waiting and (not batch or len(waiting) > parallel):
                yield from waiting.popleft().result()
            if not batch:
                return


def _prepare(batch: Sequence[ProofCase], inputs: int, mutants: int, seed: int) -> Prover:
    """Prepare a batch of Java and Python functions for the comparison with their variants.

    A variant is a rewritten version of a function. The preparation generates random inputs. It also generates
    mutants (variants with a deliberate mistake), which show whether the inputs reveal mistakes.

    Call this function only in the main thread: in Python 3.11, `ast.parse` fails if two threads call it at
    the same time.

    Args:
        batch: The functions and their variants.
        inputs: The largest number of inputs for each function.
        mutants: The largest number of mutants for each function.
        seed: The random seed.

    Returns:
        A function that compares all functions of the batch with their variants, in a given sandbox. It
        returns the outcome (`Proof`) for each function, in the order of the batch.
    """
    provers: list[tuple[list[int], Prover]] = []
    for language in sorted({case.language for case in batch}):
        if language not in _LANGUAGES:
            raise InputError(f"cannot prove {language!r}; expected one of {', '.join(_LANGUAGES)}")
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
