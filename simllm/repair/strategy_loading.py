"""Loading of the strategies in `strategies.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from simllm.errors import InputError
from simllm.io.strict_dataclass_loading import build
from simllm.repair.prompt_templates import Prompts

PARTS = ("guidance", "solution", "tests")  # what `--with` can add to a single request
SCORE = "score"
MOST_ROUNDS = 1000
_FILE = "strategies.json"
_ALL_PARTS = "single with guidance, solution and tests"


@dataclass(frozen=True)
class Round:
    """The plan of a round: which templates it sends, and which parts it adds.

    Attributes:
        messages: The names of the templates from which the messages are made.
        adds: The parts that the round adds. A round after the first is skipped if none of them is available.
        keeps_history: Whether the messages continue the conversation, or else begin a new one.
        repeats: Whether the round is repeated if the user asks for more rounds than the strategy has. Only
            the last round can be.
    """

    messages: tuple[str, ...]
    adds: tuple[str, ...] = ()
    keeps_history: bool = False
    repeats: bool = False


def load_strategy(
    prompts: Prompts,
    name: str,
    parts: Sequence[str] = (),
    rounds: int | None = None,
    is_summary: bool = False,
) -> list[Round]:
    """Load the rounds of a strategy.

    `parts` are for the strategy "single" alone. `rounds` is the number of rounds; None for as many as the
    strategy has.
    """
    if unknown := [part for part in parts if part not in PARTS]:
        raise InputError(f"--with {unknown[0]}: expected any of {', '.join(PARTS)}")
    if is_summary and set(parts) - {"guidance"}:
        raise InputError("--with: a summary has only guidance to add")
    kind = "summaries" if is_summary else "programs"
    known = _read(prompts).get(kind, {})
    if name not in known:
        # That one is an internal name for the strategy "single" with all parts.
        names = [known_name for known_name in known if known_name != _ALL_PARTS]
        raise InputError(f"strategy {name!r}: expected one of {', '.join(names) or f'none: no {kind}'}")
    found = known[name]
    if not found:
        raise InputError(f"{_FILE}: the strategy {name} has no round")
    if parts:
        if name != "single":
            raise InputError(f"--with goes with the strategy single; {name} has its own parts")
        # A request with all parts has templates of its own, with a message for each part.
        whole = set(parts) == set(PARTS)
        found = known.get(_ALL_PARTS, found) if whole else [replace(found[0], adds=tuple(parts))]
    return _repeated(found, name, len(found) if rounds is None else rounds)


def _repeated(found: list[Round], name: str, rounds: int) -> list[Round]:
    """Cut a strategy after a number of rounds, or lengthen it by repeating its last round."""
    if not 1 <= rounds <= MOST_ROUNDS:
        raise InputError(f"--rounds {rounds}: expected a whole number from 1 to {MOST_ROUNDS:,}")
    if rounds > len(found) and not found[-1].repeats:
        raise InputError(f"--rounds {rounds}: the strategy {name} has {len(found)}")
    return found[:rounds] + [found[-1]] * (rounds - len(found))


def _read(prompts: Prompts) -> dict[str, dict[str, list[Round]]]:
    """Read `strategies.json` into rounds by kind ("programs" or "summaries") and by name of strategy."""
    try:
        kinds = json.loads(prompts.texts[_FILE])
    except KeyError:
        raise InputError(f"{_FILE}: is missing") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{_FILE}: not JSON ({error})") from None
    found: dict[str, dict[str, list[Round]]] = {}
    for kind, strategies in _entries(kinds, _FILE):
        for name, rounds in _entries(strategies, f"{_FILE}, {kind}"):
            where = f"{_FILE}, {kind}, {name}"
            if not isinstance(rounds, list) or len(rounds) > MOST_ROUNDS:
                raise InputError(f"{where}: expected a list of at most {MOST_ROUNDS:,} rounds")
            numbered = enumerate(rounds, 1)
            found.setdefault(kind, {})[name] = [
                _round(row, f"{where}, round {n}", prompts) for n, row in numbered
            ]
    return found


def _entries(value: object, where: str) -> Iterable[tuple[str, object]]:
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected a JSON object")
    return value.items()


def _round(row: object, where: str, prompts: Prompts) -> Round:
    if not isinstance(row, dict):
        raise InputError(f"{where}: expected a JSON object with messages")
    found = build(Round, row, where)
    for name in found.messages:
        if name not in prompts.texts or not name.endswith(".j2"):
            raise InputError(f"{where}: there is no template {name}")
    if unknown := [part for part in found.adds if part not in (*PARTS, SCORE)]:
        raise InputError(f"{where}: unknown part {unknown[0]}; expected any of {', '.join((*PARTS, SCORE))}")
    return found
