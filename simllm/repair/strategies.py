"""Strategies: the rounds of an attempt, the templates of their prompts, and the messages made from both."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import cycle, islice, takewhile
from pathlib import Path
from typing import Any

from simllm.errors import InputError, OptionError
from simllm.execution.program_verdicts import VERDICTS
from simllm.io.reading import build, whole_text
from simllm.llm.model import Message
from simllm.llm.templates import Templates
from simllm.repair.items import RepairItem

_INCLUDED = Path(__file__).with_name("prompts")
PROMPT_SETS = ("cref-paper",)  # folders of included prompts, for `--prompts NAME`
# The variables of a template. None stands for a part that the item lacks or that the round does not add.
VARIABLES = (
    "item", "guidance", "solution", "failed", "original", "compile_log", "verdict", "score", "bar"
)  # fmt: skip


@dataclass(frozen=True)
class Prompts:
    """The texts of the templates such as "request.j2" and of "strategies.json", by file name."""

    texts: Mapping[str, str]

    @cached_property
    def _process(self) -> Templates:
        templates = {name: text for name, text in self.texts.items() if name.endswith(".j2")}
        return Templates(templates, VARIABLES)

    def check(self) -> None:
        """Check the syntax of all templates, and that they use only known variables."""
        self._process.check()

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """Make a prompt from a template, without empty lines at its beginning and end; it may be "".

        `values` has a value for each of `VARIABLES`; None for a variable without a value.
        """
        return self._process.render(name, values)


def load_prompts(folder: Path | None = None) -> Prompts:
    """Load the included prompts, with the user's own prompts in their place.

    `folder` is one of `PROMPT_SETS`, or has templates (`.j2`), or `strategies.json`, or both. A file whose
    name is not that of an included file must be used by another file; otherwise the name is probably a typing
    error.
    """
    if folder is not None and str(folder) in PROMPT_SETS:
        if folder.exists():
            raise OptionError("{prompts} {name}: a set of simllm, and a folder here; rename it", name=folder)
        folder = _INCLUDED / folder
    elif folder is not None and not folder.is_dir():
        raise InputError(f"{folder}: is no folder with prompts, and no set of them: {', '.join(PROMPT_SETS)}")
    # Texts, not paths, because the settings of a run record them.
    texts = included = _read(_INCLUDED)
    if folder is not None:
        own = _read(folder)
        if not own:
            raise InputError(f"{folder}: holds no template (.j2) and no strategies.json")
        texts = included | own
        for name in sorted(own.keys() - included.keys()):
            if not _is_used(name, texts):
                raise InputError(
                    f"{folder / name}: no other file uses it; to replace an included file, give yours its "
                    f"name: {', '.join(included)}"
                )
    prompts = Prompts(texts)
    try:
        prompts.check()
    except InputError as error:
        raise InputError(f"{folder or _INCLUDED}: {error}") from None
    return prompts


def _is_used(name: str, texts: Mapping[str, str]) -> bool:
    """Return whether another template or `strategies.json` contains a template's name in quotes."""
    quoted = re.compile(f"[\"']{re.escape(name)}[\"']")
    return any(quoted.search(text) for other, text in texts.items() if other != name)


def _read(folder: Path) -> dict[str, str]:
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix in (".j2", ".json"))
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from None
    for path in paths:
        if path.exists() and not path.is_file():  # a pipe or a device may have no end
            raise InputError(f"{path}: is no file; expected a template")
    return {path.name: whole_text(path) for path in paths}


PARTS = ("guidance", "solution", "tests")  # what can be added to a single request
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
        repeats: Whether the round is repeated if the user asks for more rounds than the strategy has. The
            last rounds of a strategy can be; they repeat in their order.
        shows_output: Whether the model is always shown what the failed tests printed.
    """

    messages: tuple[str, ...]
    adds: tuple[str, ...] = ()
    keeps_history: bool = False
    repeats: bool = False
    shows_output: bool = False


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
        raise OptionError("{parts} {part}: expected any of {all}", part=unknown[0], all=", ".join(PARTS))
    if is_summary and set(parts) - {"guidance"}:
        raise OptionError("{parts}: a summary has only guidance to add")
    kind = "summaries" if is_summary else "programs"
    known = _read_strategies(prompts).get(kind, {})
    if name not in known:
        # That one is an internal name for the strategy "single" with all parts.
        names = [known_name for known_name in known if known_name != _ALL_PARTS]
        raise InputError(f"strategy {name!r}: expected one of {', '.join(names) or f'none: no {kind}'}")
    found = known[name]
    if not found:
        raise InputError(f"{_FILE}: the strategy {name} has no round")
    if parts:
        if name != "single":
            raise OptionError("{parts} goes with the strategy single; {name} has its own parts", name=name)
        # A request with all parts has templates of its own, with a message for each part.
        whole = set(parts) == set(PARTS)
        found = known.get(_ALL_PARTS, found) if whole else [replace(found[0], adds=tuple(parts))]
    return _repeated(found, name, len(found) if rounds is None else rounds)


def _repeated(found: list[Round], name: str, rounds: int) -> list[Round]:
    """Cut a strategy after a number of rounds, or lengthen it by repeating its last rounds."""
    if not 1 <= rounds <= MOST_ROUNDS:
        message = "{rounds} {number}: expected a whole number from 1 to {most:,}"
        raise OptionError(message, number=rounds, most=MOST_ROUNDS)
    if rounds > len(found) and not found[-1].repeats:
        message = "{rounds} {number}: the strategy {name} has {found}"
        raise OptionError(message, number=rounds, name=name, found=len(found))
    repeated = list(takewhile(lambda one: one.repeats, reversed(found)))[::-1]
    return [*found, *islice(cycle(repeated), max(0, rounds - len(found)))][:rounds]


def _read_strategies(prompts: Prompts) -> dict[str, dict[str, list[Round]]]:
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


# The attributes of an item that templates can use. The fix, the reference and passed tests stay secret.
_SHOWN = ("description", "language", "code", "files", "time", "memory")


@dataclass(frozen=True)
class Feedback:
    """Feedback for a model on its last program or summary; attributes that do not apply keep their defaults.

    Attributes:
        failed: The failed tests, each with these keys: `number` (from 1), `verdict`, `input`, `output` (the
            expected output) and `actual` (the program's output; None if it is not shown to the model).
        original: The same for the incorrect program of the item, if the round shows outputs.
        compile_log: The messages of the compiler if the program does not compile.
    """

    verdict: str | None = None
    failed: Sequence[Mapping[str, Any]] = ()
    original: Sequence[Mapping[str, Any]] = ()
    compile_log: str | None = None
    score: float | None = None
    bar: float | None = None


def check_messages(
    prompts: Prompts,
    rounds: Sequence[Round],
    items: Sequence[RepairItem],
    bar: float | None,
    shows_output: bool,
) -> None:
    """Make all messages with invented feedback, so that most wrong templates are found before the first
    request.
    """
    # Whether a template works depends on the item: a hint or the files may be missing.
    for item in items:
        # A strategy may repeat its last round up to a thousand times.
        for round_ in dict.fromkeys(rounds):
            is_first = round_ is rounds[0]
            shown = shows_output or round_.shows_output
            feedback = _invented_feedback(item, bar, shown, round_.keeps_history)
            made = [round_messages(prompts, round_, item, each, is_first) for each in feedback]
            if is_first and not any(made):
                raise InputError(f"item {item.id}: the first request has no message")


def _invented_feedback(
    item: RepairItem, bar: float | None, shows_output: bool, about_reply: bool
) -> list[Feedback]:
    """Return feedback of many kinds; `about_reply` tells whether it may be about a reply of the model."""
    if bar is not None:
        return [Feedback(score=score, bar=bar) for score in (0.0, None)]
    compiler = Feedback("CE", compile_log="error: expected ';'")
    outputs = [""] if shows_output else [None]
    feedback = [Feedback(), compiler]
    for verdict in VERDICTS:
        # An accepted program needs no feedback; CE is `compiler`, above.
        if verdict in ("AC", "CE"):
            continue
        # A reply without a program has no output, even if outputs are shown.
        for output in [None] if verdict == "NC" and about_reply else outputs:
            failed = [
                {
                    "number": number,
                    "verdict": verdict,
                    "input": test.input,
                    "output": test.output,
                    "actual": output,
                }
                for number, test in enumerate(item.tests, 1)
            ]
            feedback += [Feedback(verdict, failed[:count]) for count in (1, 2) if len(failed) >= count]
    return feedback


def _added(round_: Round, item: RepairItem, feedback: Feedback) -> dict[str, Any]:
    """Return the parts that a round adds, without those that the item or the feedback lacks."""
    parts = {
        "guidance": item.guidance,
        "solution": item.solution,
        "tests": feedback.failed or feedback.compile_log,
        SCORE: feedback.bar,
    }
    return {part: parts[part] for part in round_.adds if parts[part] not in (None, "", ())}


def kind_of_prompt(round_: Round, item: RepairItem, feedback: Feedback) -> str:
    """Name what the prompt of a round adds, such as "guidance, tests" or "compile log"."""
    added = _added(round_, item, feedback)
    names = ["compile log" if part == "tests" and not feedback.failed else part for part in added]
    return ", ".join(names) or "nothing"


def round_messages(
    prompts: Prompts, round_: Round, item: RepairItem, feedback: Feedback, is_first: bool
) -> list[Message] | None:
    """Make the messages of a round; None if the round must be skipped.

    The first round of an attempt is never skipped. A later round is skipped if the item or the feedback has
    none of the parts that the round adds. In a new conversation, `feedback` is about the incorrect program.
    """
    added = _added(round_, item, feedback)
    if not (is_first or added):
        return None
    values: dict[str, Any] = dict.fromkeys(VARIABLES)
    values["item"] = {name: getattr(item, name) for name in _SHOWN}
    values["item"]["files"] = asdict(item.files) if item.files else None
    values |= {part: added[part] for part in ("guidance", "solution") if part in added}
    if "tests" in added:
        values |= {"failed": feedback.failed or None, "original": feedback.original or None}
        values |= {"compile_log": feedback.compile_log}
    if round_.keeps_history:
        values |= {"verdict": feedback.verdict, "score": feedback.score, "bar": feedback.bar}
    texts = [prompts.render(name, values) for name in round_.messages]
    return [{"role": "user", "content": text} for text in texts if text]
