"""Loading of the strategies in `strategies.json`, by which a model repairs a program or summarizes code.

A strategy is a list of rounds. A round is one request to the model.
"""

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
    """A round: one request to a model that repairs a program or summarizes code.

    The request has one or more messages. A list of rounds is called a strategy.

    Attributes:
        messages: The names of the templates from which the messages are made.
        adds: The help that the round gives the model: any of "guidance" (a tutor's hint), "solution" (a
            description of a solution), "tests" (the failed tests of the program) and "score" (the score of
            the model's last summary of the code). A round after the first round is skipped if none of its
            help is available.
        keeps_history: Whether the messages continue the conversation of earlier rounds. Otherwise, they begin
            a new conversation.
        repeats: Whether this round may be repeated. Only the last round of a strategy is ever repeated,
            namely if the user asks for more rounds than the strategy has.
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
    """Load a strategy: a list of rounds (requests) that ask a model to repair a program or to summarize code.

    Args:
        prompts: The templates of the prompts, and the file `strategies.json`, which lists all strategies.
        name: The name of the strategy, such as "cref".
        parts: The kinds of help that the model gets: any of "guidance" (a tutor's hint), "solution" (a
            description of a solution) and "tests" (the failed tests). Only the strategy "single" takes
            this argument.
        rounds: The number of rounds; None for as many as `strategies.json` lists for the strategy.
        is_summary: Whether the model summarizes code. Otherwise, it repairs programs.

    Returns:
        The rounds, in order.

    Raises:
        InputError: The file `strategies.json`, or an argument, is wrong.
    """
    if unknown := [part for part in parts if part not in PARTS]:
        raise InputError(f"--with {unknown[0]}: expected any of {', '.join(PARTS)}")
    if is_summary and set(parts) - {"guidance"}:
        raise InputError("--with: a summary has only guidance to add")
    kind = "summaries" if is_summary else "programs"
    known = _read(prompts).get(kind, {})
    if name not in known:
        names = [known_name for known_name in known if known_name != _ALL_PARTS]
        raise InputError(f"strategy {name!r}: expected one of {', '.join(names) or f'none: no {kind}'}")
    found = known[name]
    if not found:
        raise InputError(f"{_FILE}: the strategy {name} has no round")
    if parts:
        if name != "single":
            raise InputError(f"--with goes with the strategy single; {name} has its own parts")
        whole = set(parts) == set(PARTS)
        found = known.get(_ALL_PARTS, found) if whole else [replace(found[0], adds=tuple(parts))]
    return _repeated(found, name, len(found) if rounds is None else rounds)


def _repeated(found: list[Round], name: str, rounds: int) -> list[Round]:
    """Shorten a list of requests to a model, or lengthen it by repeating the last request.

    Each request is called a round. The list of rounds is called a strategy. It says how a model repairs a
    program or summarizes code.

    Args:
        found: The rounds of the strategy.
        name: The name of the strategy, for error messages.
        rounds: The number of rounds to return.

    Raises:
        InputError: `rounds` is less than 1. Or `rounds` is larger than the length of the strategy, and the
            attribute `repeats` of the last round is false.
    """
    if not 1 <= rounds <= MOST_ROUNDS:
        raise InputError(f"--rounds {rounds}: expected a whole number from 1 to {MOST_ROUNDS:,}")
    if rounds > len(found) and not found[-1].repeats:
        raise InputError(f"--rounds {rounds}: the strategy {name} has {len(found)}")
    return found[:rounds] + [found[-1]] * (rounds - len(found))


def _read(prompts: Prompts) -> dict[str, dict[str, list[Round]]]:
    """Read all strategies from the text of the file `strategies.json`.

    A strategy is a list of rounds. A round is one request to a model.

    Args:
        prompts: The texts of several files by file name: the templates of the prompts, and `strategies.json`.

    Returns:
        A dict with the keys "programs" (strategies for repairing programs) and "summaries" (strategies for
        summarizing code). Each value is a dict from the name of a strategy to its list of rounds.
    """
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
