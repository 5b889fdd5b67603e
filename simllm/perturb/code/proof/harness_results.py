"""The results that a harness writes, and the results of each case that are read from them.

A harness is a program inside the sandbox that calls functions. One harness is for Java, and one for Python.
A case is one function in several versions, which are named sides. Side 0 is the original. Side 1 is the
variant, a rewritten version. Higher sides are mutants: variants with a deliberate mistake. The harness
calls all sides of a case on the same inputs.

A harness writes one line per event to standard output, with tabs between the fields. The first field is a
key that is drawn for the run, so that a line which a function writes is not taken for a result. CASE, SIDE
and INPUT are numbers. Both harnesses write these lines:

- `begin CASE`: the case begins.
- `left CASE REASON`: an input is left out because the original's behaviour on it cannot be compared.
- `outcome CASE SIDE INPUT TEXT`: the behaviour of a side on an input. After the first input on which a
  side differs from the original, the side is not called again.
- `end CASE`: the case ends.

Only the harness for Java, which runs all sides in its own process, writes these lines:

- `side CASE SIDE`: the side is about to run.
- `error CASE REASON`: a side cannot be loaded; this side and the later ones are not called.

Only the harness for Python writes these lines:

- `broken CASE SIDE REASON`: the side does not compile.
- `died CASE SIDE`: the side ended its process, or took too long without ending a call.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

ORIGINAL, VARIANT, FIRST_MUTANT = 0, 1, 2  # the sides of a case


@dataclass
class CaseResults:
    """The results of running all versions of one function.

    The versions are the original, the variant (a rewritten version) and the mutants (variants with a
    deliberate mistake). A side is the number of a version: 0 for the original, 1 for the variant, 2 and
    higher for the mutants.

    Attributes:
        broken: For each side that does not compile, the error message.
        died: The sides that end their process; for a variant or mutant, although the original does not.
        outcomes: For each side, a dict from the index of an input to a description of the behaviour on it.
        left_out: For each reason to leave out an input, the number of inputs that were left out.
        error: The reason why the class of a side cannot be loaded after compilation; empty if all classes
            can be loaded. Only Java functions have this error.
        last_side: The side that was started last. For Python functions, it is always 0.
        ended: Whether the harness (the program that calls all versions) finished this function; False if,
            for example, the function exits the process.
    """

    broken: dict[int, str] = field(default_factory=dict)
    died: set[int] = field(default_factory=set)
    outcomes: defaultdict[int, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    left_out: Counter[str] = field(default_factory=Counter)
    error: str = ""
    last_side: int = ORIGINAL
    ended: bool = False

    def differing_input(self, side: int) -> int | None:
        """Return the index of the first input on which a version of the function differs from the original.

        Args:
            side: The number of the version: 1 for the variant (a rewritten version), and 2 or higher for a
                mutant (a variant with a deliberate mistake).

        Returns:
            The index; None if the version behaves like the original on all inputs.
        """
        original = self.outcomes[ORIGINAL]
        return next((n for n, text in self.outcomes[side].items() if text != original.get(n)), None)


def read_results(content: bytes, key: str, results: Mapping[int, CaseResults]) -> set[int]:
    """Read the results of running functions and their rewritten versions from the output of a harness.

    Lines without the key, and lines that no harness writes, are ignored: they come from functions.

    Args:
        content: The output of the harness. An incomplete last line is ignored.
        key: The word with which each line of the harness begins.
        results: A dict from the number of each case of the run to the object to which the results of the case
            are added.

    Returns:
        The numbers of the cases that the harness began to run.
    """
    begun = set()
    for line in content.decode(errors="replace").split("\n")[:-1]:  # the last line may be half written
        first, *fields = line.split("\t")
        if first != key:
            continue
        with contextlib.suppress(ValueError, KeyError):
            _add(fields, results)
            begun.add(int(fields[1]))
    return begun


def _add(fields: Sequence[str], results: Mapping[int, CaseResults]) -> None:
    """Add one line to the results of its case.

    Raises:
        ValueError: The line is damaged.
        KeyError: The case does not belong to the run.
    """
    kind, number, *rest = fields
    case = results[int(number)]
    match kind, rest:
        case "broken", [side, reason]:
            case.broken[int(side)] = reason
        case "outcome", [side, place, text]:
            case.outcomes[int(side)][int(place)] = text
        case "left", [reason]:
            case.left_out[reason] += 1
        case "side", [side]:
            case.last_side = int(side)
        case "died", [side]:
            case.died.add(int(side))
        case "error", [reason]:
            case.error = reason
        case "end", []:
            case.ended = True
