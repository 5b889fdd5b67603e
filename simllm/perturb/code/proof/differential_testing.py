"""Comparison of many variants (rewritten functions) with their originals by running both."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from simllm.errors import InputError
from simllm.execution import Sandbox
from simllm.execution.compilers_and_interpreters import find_toolchain
from simllm.perturb.code.proof.java_proofs import prepare_java
from simllm.perturb.code.proof.proof_case import ProofCase
from simllm.perturb.code.proof.proof_verdict import Proof, Prover
from simllm.perturb.code.proof.python_proofs import prepare_python
from simllm.perturb.code.proof.random_arguments import require_hypothesis

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
