"""The harness for Python: a program that calls all sides of each case on the same inputs.

The harness runs inside the sandbox, in the sandbox's own Python, so it imports nothing of simllm. It reads a
list of cases from cases.json, and writes the lines that `harness` describes. Sides run in processes of
their own, which have no access to this output: they report through a pipe, and everything that they leave
behind is killed. The argument is `contained` if the harness runs in a sandbox, where no other processes can
be killed by mistake. Each case has these keys:

- `number`: the number of the case
- `around`: code that the function needs to run
- `sides`: the `source` of each side, the original first, with the function's name as `entry`
- `wanted`: the number of usable inputs to find; an input is usable if the behaviour of the original on it can
  be compared
- `inputs`: for each input, the positional arguments, the keyword arguments (both as Python expressions),
  and whether one of them is a large number

A behaviour is described by a text: the returned value or the error, the printed text, and the arguments and
global variables after the call. The *place* of an input or a side is its index in the case.
"""

from __future__ import annotations
import __future__

import asyncio
import contextlib
import ctypes
import inspect
import io
import itertools
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

ORIGINAL_SECONDS, VARIANT_SECONDS, MUTANT_SECONDS = 0.025, 1.0, 0.1  # processor time of a call
SIDE_SECONDS, SIDE_WAITING = 10, 30  # processor time and wall time of all calls of a side
WAITING = 10  # wall time at most, in units of the processor time
MOST_TIME_UPS = 10  # then no more inputs are tried
MEMORY = 512 << 20  # bytes
TIME_UP = "exceeds the time limit"
MOST_ITEMS = 1000
DEEPEST = 6
LONGEST = 1000  # characters of an outcome
PART, MOST_REPORTED = 1 << 16, 1 << 22  # bytes that are read at once, and that the calls of a side report
ADDRESS = re.compile(r"\bat 0x[0-9a-f]+")
CONSTANTS = {"nan": float("nan"), "inf": float("inf")}
PR_SET_DUMPABLE = 4
FOLDER = Path("working").absolute()  # the current folder of the functions
CONTAINED = sys.argv[1:] == ["contained"] and os.getpid() < 10  # the first numbers belong to the sandbox

Rows = list[list[str]]


class TimeUpError(BaseException):
    """Raised inside a call that exceeds its time limit."""


class Side:
    """One side of a case, compiled."""

    def __init__(self, around: str, source: str, entry: str) -> None:
        flags = __future__.annotations.compiler_flag  # types in annotations need not exist
        self.code = compile(f"{around}\n{source}", "function", "exec", flags, dont_inherit=True)
        self.entry = entry

    def call(self, given: tuple[list[str], dict[str, str]], seconds: float) -> tuple[str, str]:
        """Load the side into a new module, call it, and describe the behaviour.

        The second result is the reason why the input cannot be used to compare sides, or "".
        """
        # All sides draw the same random numbers.
        random.seed(0)
        # A function may fork, and its copy must not go on with this program.
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
            # A new module for each call, so that global variables do not carry over.
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
    """Return why an input on which the original raises this error cannot be used; "" if it can."""
    # Input is only left out for errors that tell nothing about the function; for others, classes must agree.
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
    """Return whether a global variable holds data, on which sides must agree after a call."""
    return not (name.startswith("__") or callable(value) or isinstance(value, types.ModuleType))


def limited(work: Callable[[], Any], seconds: float) -> Any:
    """Call a function with limits of processor time (`seconds`) and wall time (10 times as long)."""
    try:
        # If the function catches the error, the next one comes soon.
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds / 10)
        signal.setitimer(signal.ITIMER_REAL, WAITING * seconds, seconds)
        return work()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def raise_time_up(_: int, frame: types.FrameType | None) -> None:
    """Handle a timer signal: end the current call by raising `TimeUpError`."""
    while frame is not None:
        # Several signals may arrive at once, for example while a long list is freed. Those after the first
        # one come when the call has already ended, and must not end the process.
        if frame.f_code is Side._call.__code__:
            raise TimeUpError
        frame = frame.f_back


def describe(value: Any, depth: int = 0) -> str:
    """Describe a value by a text without what may differ although the behaviour is the same.

    Left out are memory addresses, the order of the items of a set, and the names of functions.
    """
    if depth > DEEPEST:
        return "..."
    kind = type(value)
    if kind in (str, bytes, int, float, complex, bool, type(None), range):
        return repr(value)
    if kind in (list, tuple, set, frozenset, dict):
        return f"{kind.__name__}({', '.join(describe_items(value, depth + 1))})"
    # Reading an iterator changes it, but the call is over.
    if isinstance(value, Iterator):
        return f"iterator({', '.join(describe_items(value, depth + 1))})"
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        return "function" if not isinstance(value, type) else f"class {value.__name__}"
    text = ADDRESS.sub("at", repr(value))
    if text.endswith(" object at>") and hasattr(value, "__dict__"):  # the text says nothing about the value
        return f"{kind.__name__}({describe(vars(value), depth + 1)})"
    return text


def describe_items(items: Any, depth: int) -> list[str]:
    """Describe the items of a collection, or the first 1000 that an iterator still has."""
    if isinstance(items, dict):
        return [f"{describe(key, depth)}: {describe(item, depth)}" for key, item in items.items()]
    if isinstance(items, (set, frozenset)):
        # Equal sets may have different orders.
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
    """Cut a text after 1000 characters, and add a hash, so that different texts stay different."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... #{hash(text)}"


def one_line(text: str) -> str:
    """Replace tabs and line ends, which separate fields and lines of the results."""
    return re.sub(r"[\t\r\n]", " ", text).encode("utf-8", "backslashreplace").decode()


def run_original(case: dict[str, Any], report: int) -> None:
    """Call the original until enough usable inputs are found, and report each as `called` or `left`."""
    side = Side(case["around"], **case["sides"][0])
    counted, time_ups = 0, 0
    for place, (positional, keywords, is_large) in enumerate(case["inputs"]):
        if counted == case["wanted"] or time_ups == MOST_TIME_UPS:
            return
        # One call was too slow already, probably a loop over its large argument.
        if time_ups and is_large:
            continue
        outcome, objection = side.call((positional, keywords), ORIGINAL_SECONDS)
        time_ups += objection == TIME_UP
        if objection:
            write(report, "left", objection)
        else:
            write(report, "called", place, outcome)
            counted += 1


def repeat_original(case: dict[str, Any], called: dict[int, str], report: int) -> None:
    """Call the original a second time; report an input as `outcome` if it behaves the same, or as `left`."""
    side = Side(case["around"], **case["sides"][0])
    kept = []
    for place, first in called.items():
        # The second call gets other memory addresses, on which a function must not depend.
        kept.append([[{}, set(), [0], (place,), object(), str(place)] for _ in range(50)])
        positional, keywords, _ = case["inputs"][place]
        if side.call((positional, keywords), VARIANT_SECONDS)[0] == first:
            write(report, "outcome", place, first)
        else:
            write(report, "left", "two calls of the original differ")


def run_variant(
    case: dict[str, Any], place: int, called: dict[int, str], expected: dict[int, str], report: int
) -> None:
    """Call a variant or mutant until it differs from the original on an input with an expected behaviour."""
    side = Side(case["around"], **case["sides"][place])
    # A variant may be much slower than its original and still be right; a slow mutant is just wrong.
    seconds = VARIANT_SECONDS if place == 1 else MUTANT_SECONDS
    # Also inputs without an expected behaviour, because each call can affect later ones.
    for input_place in called:
        positional, keywords, _ = case["inputs"][input_place]
        outcome, _ = side.call((positional, keywords), seconds)
        if input_place in expected:
            write(report, "outcome", input_place, outcome)
            if outcome != expected[input_place]:
                return


def run_case(case: dict[str, Any], results: int, key: str) -> None:
    """Run all sides of a case, each in its own process, and write the results."""
    number = case["number"]
    write(results, key, "begin", number)
    broken = set()
    for place, side in enumerate(case["sides"]):
        try:
            Side(case["around"], **side)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
            write(results, key, "broken", number, place, f"does not compile: {error}")
            broken.add(place)
    if case["inputs"] and not broken & {0, 1}:
        ended, rows = in_own_process(partial(run_original, case), results)
        called = outcomes_of(rows, "called", case)
        left = reasons_of(rows)
        expected: dict[int, str] = {}
        if ended:
            ended, rows = in_own_process(partial(repeat_original, case, called), results)
            expected = outcomes_of(rows, "outcome", case) if ended else {}
            left += reasons_of(rows)
        for reason in left:
            write(results, key, "left", number, reason)
        for input_place, outcome in expected.items():
            write(results, key, "outcome", number, 0, input_place, outcome)
        for place in sorted(set(range(1, len(case["sides"]))) - broken) if expected else ():
            completed, rows = in_own_process(partial(run_variant, case, place, called, expected), results)
            for input_place, outcome in outcomes_of(rows, "outcome", case).items():
                # Rows come from the process of a side, which may report anything.
                if input_place in expected:
                    write(results, key, "outcome", number, place, input_place, outcome)
            if not completed:
                write(results, key, "died", number, place)
        if not ended:
            write(results, key, "died", number, 0)
    write(results, key, "end", number)


def in_own_process(work: Callable[[int], None], results: int) -> tuple[bool, Rows]:
    """Run a function in a new process and an empty folder, and kill whatever it leaves behind.

    `work` gets the file descriptor to which it reports. Return whether it came to its end, and its rows.
    """
    FOLDER.mkdir()
    reports, report = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            # The functions must not write results themselves.
            os.close(results)
            os.close(reports)
            os.setpgid(0, 0)
            # The function may look at its own process; this harness stays closed to it.
            set_dumpable(True)
            os.chdir(FOLDER)
            # Not before the fork: the harness must outlive a side that takes too much.
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (SIDE_SECONDS, SIDE_SECONDS))
            signal.signal(signal.SIGVTALRM, raise_time_up)
            signal.signal(signal.SIGALRM, raise_time_up)
            process = os.getpid()
            work(report)
            # A copy of the process that the function made must not report its end.
            if os.getpid() == process:
                write(report, "end")
        finally:
            os._exit(0)
    os.close(report)
    exited = os.pidfd_open(child)
    text = read_until_exit(reports, exited)
    kill_processes(child)
    text += read_rest(reports)
    os.close(reports)
    os.close(exited)
    old = Path(f"{FOLDER}.old")  # a folder that cannot be deleted can be moved
    shutil.rmtree(old, ignore_errors=True)
    FOLDER.rename(old)
    shutil.rmtree(old, ignore_errors=True)
    # The last line may be half written.
    rows = [line.split("\t") for line in text.decode(errors="replace").split("\n")[:-1]]
    ended = bool(rows) and rows[-1] == ["end"] and len(text) <= MOST_REPORTED
    return ended, rows


def read_until_exit(reports: int, exited: int) -> bytes:
    """Read what a process reports, until it exits, reports too much, or its wall time is over."""
    text = b""
    end = time.monotonic() + SIDE_WAITING
    poll = select.poll()
    poll.register(reports, select.POLLIN)
    # Other processes may hold the pipe open for ever, so that its end tells nothing.
    poll.register(exited, select.POLLIN)
    while len(text) <= MOST_REPORTED and (left := end - time.monotonic()) > 0:
        events = dict(poll.poll(1000 * left))
        if events.get(reports, 0) & select.POLLIN:
            text += os.read(reports, PART)
        elif exited in events:
            break
        elif reports in events:  # the process has closed the pipe
            poll.unregister(reports)
    return text


def read_rest(reports: int) -> bytes:
    """Read what is left in a pipe, without waiting for processes that could not be killed."""
    text = b""
    os.set_blocking(reports, False)
    with contextlib.suppress(BlockingIOError):
        while len(text) <= MOST_REPORTED and (part := os.read(reports, PART)):
            text += part
    return text


def kill_processes(child: int) -> None:
    """Kill a child process and what it has started; in a sandbox, all processes but this one."""
    if not CONTAINED:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return
    # One signal to all is the only way to end processes that start others all the time.
    os.kill(-1, signal.SIGKILL)  # at least the child exists, if only as a zombie
    os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        while True:  # until the first process of the sandbox has collected them
            os.kill(-1, signal.SIGKILL)
            time.sleep(0.001)


def set_dumpable(value: bool) -> None:
    """Set whether other processes of the same user may trace this process and open its files in /proc."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, int(value), 0, 0, 0)


def outcomes_of(rows: Rows, kind: str, case: dict[str, Any]) -> dict[int, str]:
    """Return the behaviour on each input, of the rows of a kind; rows that no harness writes are ignored."""
    return {
        int(row[1]): row[2]
        for row in rows
        if row[0] == kind and len(row) == 3 and row[1].isdecimal() and int(row[1]) < len(case["inputs"])
    }


def reasons_of(rows: Rows) -> list[str]:
    """Return the reasons to leave out inputs."""
    return [row[1] for row in rows if row[0] == "left" and len(row) == 2]


def write(file: int, *fields: object) -> None:
    """Write a line at once, so that it is not lost if this process dies."""
    line = "\t".join(one_line(str(field)) for field in fields)
    data = f"{line}\n".encode()
    while data:
        data = data[os.write(file, data) :]


def main() -> None:
    """Run the cases of cases.json and write how their sides behave."""
    results = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    # Functions inherit these, and could write to the results.
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    sys.stderr = io.StringIO()
    set_dumpable(False)
    sys.path.pop(0)  # the folder of the harness, in which a function could leave modules for the next one
    described = json.loads(Path("cases.json").read_text(encoding="utf-8"))
    key = Path("key.txt").read_text(encoding="utf-8")
    for case in described:
        run_case(case, results, key)


if __name__ == "__main__":
    main()
