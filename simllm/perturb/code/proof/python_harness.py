"""The harness for Python: a program that calls functions and their variants on the same inputs.

A variant is a rewritten version of a function. The harness runs inside the sandbox, in the sandbox's own
Python, so it imports nothing of simllm. It reads a list of cases from cases.json, and writes to results.txt.
The module `harness_results` describes the lines of results.txt. Each case has these keys:

- `number`: the number of the case
- `around`: code that the function needs to run
- `sides`: the versions of the function, the original first; each has a `source`, and the function's name as
  `entry`
- `wanted`: the number of usable inputs to find; an input is usable if the behaviour of the original on it can
  be compared
- `inputs`: for each input, the positional arguments, the keyword arguments (both as Python expressions),
  and whether one of them is a large number
"""

from __future__ import annotations
import __future__

import asyncio
import inspect
import io
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

ORIGINAL_SECONDS, VARIANT_SECONDS, MUTANT_SECONDS = 0.025, 1.0, 0.1  # processor time of a call
SIDE_SECONDS = 20  # processor time of all calls of a side
WAITING = 10  # wall time at most, in units of the processor time
MOST_TIME_UPS = 10  # then no more inputs are tried
MEMORY = 512 << 20  # bytes
TIME_UP = "exceeds the time limit"
MOST_ITEMS = 1000
DEEPEST = 6
COMPLETED = 77  # the exit status of a process that comes to its end; 0 can be that of a function
LONGEST = 1000  # characters of an outcome
ADDRESS = re.compile(r"\bat 0x[0-9a-f]+")
CONSTANTS = {"nan": float("nan"), "inf": float("inf")}
RESULTS = Path("results.txt").absolute()
FOLDER = Path("working").absolute()  # the current folder of the functions


class TimeUpError(BaseException):
    """Error raised inside a call that exceeds its time limit."""


class Side:
    """One version of a function: the original, its variant, or a deliberately incorrect variant.

    Args:
        around: Code that the function needs to run.
        source: The source of the function.
        entry: The name of the function.
    """

    def __init__(self, around: str, source: str, entry: str) -> None:
        flags = __future__.annotations.compiler_flag  # types in annotations need not exist
        self.code = compile(f"{around}\n{source}", "function", "exec", flags, dont_inherit=True)
        self.entry = entry

    def call(self, given: tuple[list[str], dict[str, str]], seconds: float) -> tuple[str, str]:
        """Load the function and the code that it needs into a new module, and call the function.

        Args:
            given: The positional and the keyword arguments, as Python expressions.
            seconds: The limit of processor time.

        Returns:
            A description of the behaviour (such as the returned value), and the reason why the input cannot
            be used to compare versions of the function. The reason is empty if the input can be used.
        """
        random.seed(0)
        process = os.getpid()
        before = sys.stdout
        printed = sys.stdout = io.StringIO()
        sys.stdin = io.StringIO()
        try:
            outcome, objection = limited(lambda: self._call(given), seconds)
        except TimeUpError:
            return TIME_UP, TIME_UP
        finally:
            sys.stdout = before
            if os.getpid() != process:  # the function has made a copy of this process
                os._exit(0)
        text = printed.getvalue()
        return one_line(shorten(f"{outcome}; prints {text!r}" if text else outcome)), objection

    def _call(self, given: tuple[list[str], dict[str, str]]) -> tuple[str, str]:
        module = types.ModuleType("function")
        variables = module.__dict__
        positional, keywords = [], {}
        objection = ""
        try:
            exec(self.code, variables)
            positional = [eval(text, dict(CONSTANTS)) for text in given[0]]
            keywords = {name: eval(text, dict(CONSTANTS)) for name, text in given[1].items()}
            result = variables[self.entry](*positional, **keywords)
            if inspect.iscoroutine(result):
                result = asyncio.run(result)
            outcome = f"returns {describe(result)}"
        except TimeUpError:
            raise
        except BaseException as error:
            outcome = f"raises {type(error).__name__}"
            objection = objection_to(error)
        arguments = [describe(value) for value in (*positional, *keywords.values())]
        kept = {name: value for name, value in variables.items() if is_data(name, value)}
        outcome += f"; arguments {', '.join(arguments)}"
        return (f"{outcome}; variables {describe(kept)}" if kept else outcome), objection


def objection_to(error: BaseException) -> str:
    """Return why an input cannot be used to compare a function with its variant (a rewritten version).

    The original function raises an error on the input. If this is a TypeError, for example, the input
    probably has the wrong types, and is not used.

    Args:
        error: The error that the original function raises on the input.

    Returns:
        The reason; empty if the input can be used. The variant must then raise an error of the same class.
    """
    if isinstance(error, NameError) and not isinstance(error, UnboundLocalError):
        return f"needs names that are unknown: {error.name}"
    if isinstance(error, ImportError):
        return f"needs modules that are not installed: {error.name}"
    if isinstance(error, MemoryError):
        return "needs much memory"
    if isinstance(error, (TypeError, AttributeError, UnboundLocalError)):
        return f"the original raises {type(error).__name__}"
    return ""


def is_data(name: str, value: object) -> bool:
    """Return whether a global variable holds data: neither a module nor anything that can be called.

    After a call, a function and its variant (a rewritten version) must leave the same data in global
    variables. A variable whose name begins with `__` does not count as data.

    Args:
        name: The name of the variable.
        value: The value of the variable.
    """
    return not (name.startswith("__") or callable(value) or isinstance(value, types.ModuleType))


def limited(work: Callable[[], Any], seconds: float) -> Any:
    """Call a function with a limit of processor time.

    Args:
        work: The function, which takes no arguments.
        seconds: The limit of processor time. The limit of wall time is 10 times as long (`WAITING`).

    Returns:
        The result of the function.

    Raises:
        TimeUpError: The function exceeds a limit.
    """
    try:
        # If the function catches the error, the next one comes soon.
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds / 10)
        signal.setitimer(signal.ITIMER_REAL, WAITING * seconds, seconds)
        return work()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def raise_time_up(*_: object) -> None:
    """Handle a timer signal: end the current call by raising `TimeUpError`."""
    raise TimeUpError


def describe(value: Any, depth: int = 0) -> str:
    """Describe a value, such as a returned value, by a text.

    The harness compares such texts to find out whether two versions of a function behave the same. Therefore
    the text omits what may differ without a change of behaviour: memory addresses, the order of the items of
    a set, and the names of functions.

    Args:
        value: The value.
        depth: The number of containers around the value. If it exceeds 6 (`DEEPEST`), the description is
            "...".
    """
    if depth > DEEPEST:
        return "..."
    kind = type(value)
    if kind in (str, bytes, int, float, complex, bool, type(None), range):
        return repr(value)
    if kind in (list, tuple, set, frozenset, dict):
        return f"{kind.__name__}({', '.join(describe_items(value, depth + 1))})"
    if isinstance(value, Iterator):
        return f"iterator({', '.join(describe_items(value, depth + 1))})"
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        return "function" if not isinstance(value, type) else f"class {value.__name__}"
    text = ADDRESS.sub("at", repr(value))
    if text.endswith(" object at>") and hasattr(value, "__dict__"):  # the text says nothing about the value
        return f"{kind.__name__}({describe(vars(value), depth + 1)})"
    return text


def describe_items(items: Any, depth: int) -> list[str]:
    """Describe each item of a collection, or each remaining item of an iterator, by a text.

    The harness compares such texts to find out whether two versions of a function behave the same. An item of
    a dict is written as "key: value". The texts for a set are sorted, so that equal sets get equal texts. At
    most 1000 (`MOST_ITEMS`) items of a list, tuple or iterator are described.

    Args:
        items: The collection or iterator.
        depth: The number of containers around each item. If it exceeds 6 (`DEEPEST`), items are written as
            "...".
    """
    if isinstance(items, dict):
        return [f"{describe(key, depth)}: {describe(item, depth)}" for key, item in items.items()]
    if isinstance(items, (set, frozenset)):
        return sorted(describe(item, depth) for item in items)
    found = []
    try:
        for item in itertools.islice(items, MOST_ITEMS):
            found.append(describe(item, depth))
    except TimeUpError:
        raise
    except Exception as error:
        found.append(f"raises {type(error).__name__}")
    return found


def shorten(text: str) -> str:
    """Cut a text after 1000 characters (`LONGEST`), and add a hash of the text, so that texts stay distinct.

    A shorter text is returned unchanged.
    """
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... #{hash(text)}"


def one_line(text: str) -> str:
    """Replace tabs and line ends in a text by spaces.

    In the results file, tabs separate fields, and line ends separate lines.
    """
    return re.sub(r"[\t\r\n]", " ", text).encode("utf-8", "backslashreplace").decode()


def run_original(case: dict[str, Any]) -> None:
    """Call the original function on one input after the other, until enough usable inputs are found.

    An input is usable if variants (rewritten versions of the function) can be compared with the original on
    it. One line for each call is appended to the results file. The line begins with `called` if the input is
    usable, and with `left` if it is not. The calls also stop after 10 calls that exceed the time limit.

    Args:
        case: The case, a dict whose keys are described at the top of this module. The first of its `sides` is
            the original function.
    """
    side = Side(case["around"], **case["sides"][0])
    counted, time_ups = 0, 0
    for place, (positional, keywords, is_large) in enumerate(case["inputs"]):
        if counted == case["wanted"] or time_ups == MOST_TIME_UPS:
            return
        if time_ups and is_large:
            continue
        outcome, objection = side.call((positional, keywords), ORIGINAL_SECONDS)
        time_ups += objection == TIME_UP
        if objection:
            write("left", case["number"], objection)
        else:
            write("called", case["number"], place, outcome)
            counted += 1


def repeat_original(case: dict[str, Any], called: dict[int, str]) -> None:
    """Call the original function a second time on each input, to check that it behaves in the same way.

    One line for each input is appended to the results file. The line begins with `outcome` if both calls
    behave in the same way. Otherwise, it begins with `left`, and variants (rewritten versions of the
    function) are not compared with the original on this input.

    Args:
        case: The case, a dict whose keys are described at the top of this module. The first of its `sides` is
            the original function.
        called: A dict from the index of each input to a description of the behaviour in the first call.
    """
    side = Side(case["around"], **case["sides"][0])
    kept = []
    for place, first in called.items():
        kept.append([[{}, set(), [0], (place,), object(), str(place)] for _ in range(50)])  # other addresses
        positional, keywords, _ = case["inputs"][place]
        if side.call((positional, keywords), VARIANT_SECONDS)[0] == first:
            write("outcome", case["number"], 0, place, first)
        else:
            write("left", case["number"], "two calls of the original differ")


def run_variant(case: dict[str, Any], place: int, called: dict[int, str], expected: dict[int, str]) -> None:
    """Call a rewritten function (a variant) on several inputs, and write its behaviour to the results file.

    The behaviour of the variant is compared with that of the original function. The calls stop when the two
    differ. On some inputs, the original itself behaved differently in two calls. The variant is called on
    these inputs, too, because each call can affect later calls. But its behaviour on these inputs is neither
    compared nor written.

    Args:
        case: The case, a dict whose keys are described at the top of this module.
        place: The index of the variant in `case["sides"]`.
        called: The inputs on which the variant is called. The keys are the indices of the inputs. The values
            are not used.
        expected: The behaviour of the original on each input on which the variant is compared with it. The
            keys are the indices of the inputs.
    """
    side = Side(case["around"], **case["sides"][place])
    seconds = VARIANT_SECONDS if place == 1 else MUTANT_SECONDS
    for input_place in called:
        positional, keywords, _ = case["inputs"][input_place]
        outcome, _ = side.call((positional, keywords), seconds)
        if input_place in expected:
            write("outcome", case["number"], place, input_place, outcome)
            if outcome != expected[input_place]:
                return


def run_case(case: dict[str, Any]) -> None:
    """Run all versions of a function, each in its own process, and append the results to the results file.

    Args:
        case: The case, a dict whose keys are described at the top of this module. Its `sides` are the
            versions of the function.
    """
    number = case["number"]
    write("begin", number)
    broken = set()
    for place, side in enumerate(case["sides"]):
        try:
            Side(case["around"], **side)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            write("broken", number, place, f"does not compile: {error}")
            broken.add(place)
    ended = True
    if case["inputs"] and not broken & {0, 1}:
        begun = RESULTS.stat().st_size
        ended = in_own_process(partial(run_original, case))
        called = read_outcomes(begun, "called")
        ended = ended and in_own_process(partial(repeat_original, case, called))
        expected = read_outcomes(begun, "outcome") if ended else {}
        for place in set(range(1, len(case["sides"]))) - broken if expected else ():
            if not in_own_process(partial(run_variant, case, place, called, expected)):
                write("died", number, place)
    if ended:
        write("end", number)


def in_own_process(work: Callable[[], None]) -> bool:
    """Run a function in a new process and an empty folder; return whether it ended without an error."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.chdir(FOLDER)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (SIDE_SECONDS, SIDE_SECONDS))
            signal.signal(signal.SIGVTALRM, raise_time_up)
            signal.signal(signal.SIGALRM, raise_time_up)
            work()
            status = COMPLETED
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == COMPLETED


def read_outcomes(begun: int, kind: str) -> dict[int, str]:
    """Read from results.txt how a function behaved on each input.

    The lines to read end with the index of an input and a description of the behaviour on this input, such
    as the returned value.

    Args:
        begun: The position in bytes from which the file is read to its end.
        kind: The first field of the lines to read: "called" or "outcome". Other lines are ignored.

    Returns:
        A dict from the index of each input to the description of the behaviour.
    """
    with RESULTS.open("rb") as file:
        file.seek(begun)
        lines = [line.split("\t") for line in file.read().decode().split("\n")]
    return {int(line[-2]): line[-1] for line in lines if line[0] == kind}


def write(*fields: object) -> None:
    """Append a line to the results file immediately, so that the line is not lost if this process dies.

    Args:
        fields: The fields of the line. Tabs are written between them.
    """
    line = "\t".join(one_line(str(field)) for field in fields)
    with RESULTS.open("ab") as file:
        file.write(f"{line}\n".encode())


def main() -> None:
    """Call each function in cases.json and its rewritten versions, and write their behaviour to results.txt.

    The results tell whether the versions behave like the original function. The behaviour in a call is the
    returned value or the error, the printed text, and the arguments and global variables after the call. Both
    files are in the current folder.
    """
    sys.stderr = io.StringIO()
    for case in json.loads(Path("cases.json").read_text(encoding="utf-8")):
        run_case(case)


if __name__ == "__main__":
    main()
