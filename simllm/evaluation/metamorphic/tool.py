"""The tool under test: running of its command, the questions to it, and the record of its answers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Any

from simllm.errors import InputError
from simllm.evaluation.metamorphic.results import SIDES, Draw
from simllm.execution.watchdog import Watchdog
from simllm.io import reading

LARGEST_OUTPUT = 16 * 2**20  # bytes of an answer
_PAUSE = 0.05  # seconds between looks whether a silent command has ended
TIMEOUT, TOO_LONG = "timeout", "too long"  # statuses of commands that were ended

ANSWERS = "answers.jsonl"


# Fields that tell how an answer is judged, or what a study knows about an item; tools must not see them. The
# code of an item reaches them in another way.
_HIDDEN = frozenset("reference label nll group names where source files variants".split())
_FIELDS = "item.json"  # the file with the fields, in the folder of a run


def fields_for(item: Mapping[str, Any], variant: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the fields and files of an item that a tool sees with its code, or with that of a variant.

    In all texts, the functions that the variant renamed have their new names: a failing test has to call
    functions that exist.
    """
    shown = {name: value for name, value in item.items() if name not in _HIDDEN}
    shown["files"] = item.get("files") or {}
    if variant is None or not variant.get("names"):
        return shown
    # Only here: recorded results can be read without the extra `code`.
    from simllm.perturb.code.restoring import renamed_functions

    renamed = renamed_functions(variant["text"], item["language"], variant["names"])
    kept = {name: shown[name] for name in ("id", "language")}
    return {name: _renamed(value, renamed) for name, value in shown.items()} | kept


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Replace names in all texts of a JSON value, but not in the keys of objects."""
    from simllm.perturb.code.restoring import rename_text

    if isinstance(value, str):
        return rename_text(value, names)
    if isinstance(value, list):
        return [_renamed(part, names) for part in value]
    if isinstance(value, dict):
        return {key: _renamed(part, names) for key, part in value.items()}
    return value


@contextlib.contextmanager
def item_folder(fields: Mapping[str, Any]) -> Iterator[str]:
    """Make a folder for one run of a command, with the fields of an item as JSON, and its files."""
    with tempfile.TemporaryDirectory(prefix="simllm-item-") as name:
        folder = Path(name)
        for inner, text in (fields.get("files") or {}).items():
            file = folder / inner
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode(errors="replace"))
        own = {name: value for name, value in fields.items() if name != "files"}
        (folder / _FIELDS).write_bytes(json.dumps(own, ensure_ascii=False).encode(errors="replace"))
        yield name


def check_files(item: Mapping[str, Any], where: str) -> None:
    """Check that the `files` of an item are texts by path, and that each path stays inside a folder."""
    files = item.get("files")
    if files is None:
        return
    if not isinstance(files, dict) or not all(isinstance(text, str) for text in files.values()):
        raise InputError(f"{where}: expected texts by path under files")
    for name in files:
        parts = PurePosixPath(name).parts
        if not parts or parts[0] == "/" or ".." in parts or "\0" in name or name == _FIELDS:
            raise InputError(f"{where}: {name!r} under files is not a path for a file in a folder")
        # A folder and a file cannot have the same name.
        if any(str(above) in files for above in PurePosixPath(name).parents):
            raise InputError(f"{where}: {name!r} under files lies in another file")


def environment(id_: str, language: str, draw: int, folder: str) -> dict[str, str]:
    """Return the environment variables for a run of a tool; none tells whether the code is rewritten.

    `draw` is the number of this run among the runs on the same code, counted from 0.
    """
    return {
        "SIMLLM_ID": id_,
        "SIMLLM_LANGUAGE": language,
        "SIMLLM_DRAW": str(draw),
        "SIMLLM_FOLDER": folder,
    }


class CommandRunner:
    """Runs commands, several at once, during a `with` block; none of them outlives the block.

    The commands are also ended if this process is killed. Each has a process group of its own.
    """

    def __enter__(self) -> CommandRunner:
        self._lock = threading.Lock()
        self._running: set[int] = set()
        self._is_closed = False
        self._watchdog = Watchdog().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            # Under the lock, so that no command starts after the others have been killed.
            self._is_closed = True
            for group in self._running:
                _kill(group)
        self._watchdog.__exit__(kind, error, trace)

    def run(
        self,
        command: Sequence[str],
        text: str,
        variables: Mapping[str, str],
        timeout: float,
    ) -> tuple[str, str]:
        """Run a command on a text for up to `timeout` seconds; return its status and standard output.

        The status is the exit status as text, "timeout" or "too long"; the output is empty for the last two.
        At the end, all processes of the command's group are killed.
        """
        deadline = time.monotonic() + timeout
        # A file instead of a pipe: a command that does not read its input cannot block this process.
        with tempfile.TemporaryFile() as given:
            given.write(text.encode(errors="replace"))
            given.seek(0)
            process = self._start(command, given, variables)
        try:
            output = _read(process, deadline)
            if output is None:
                return TOO_LONG, ""
            process.wait(max(deadline - time.monotonic(), 0))
        except (subprocess.TimeoutExpired, TimeoutError):
            return TIMEOUT, ""
        finally:
            self._end(process)
        if self._is_closed:  # `__exit__` has killed the command: its status is not the command's own
            raise InputError(f"{command[0]}: was stopped")
        return str(process.returncode), output.decode(errors="replace")

    def _start(
        self, command: Sequence[str], given: IO[bytes], variables: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_closed:
                raise InputError(f"{command[0]}: was stopped")
            try:
                process = subprocess.Popen(
                    command,
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, **variables},
                    start_new_session=True,
                )
            except OSError as error:
                raise InputError(f"{command[0]}: cannot be started ({error.strerror})") from None
            except ValueError as error:  # a null byte
                raise InputError(f"{command[0]}: cannot be started ({error})") from None
            self._running.add(process.pid)
            self._watchdog.tell(process.pid)
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill what is left of the process group of a command."""
        with self._lock:
            _kill(process.pid)
            self._running.discard(process.pid)
            self._watchdog.tell(process.pid)
        if process.stdout:
            process.stdout.close()
        process.wait()


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _read(process: subprocess.Popen[bytes], deadline: float) -> bytes | None:
    """Read the standard output of a process until the process ends; None if there is too much.

    Raises TimeoutError after the deadline (of `time.monotonic`).
    """
    found: list[bytes] = []
    left = LARGEST_OUTPUT
    pipe = process.stdout
    if pipe is None:
        return b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while left >= 0:
            seconds = deadline - time.monotonic()
            # Processes that a command leaves behind may keep the pipe open, so its end is not waited for.
            # Before the select: all that the process wrote is in the pipe when it has ended.
            has_ended = process.poll() is not None
            if seconds <= 0 and not has_ended:
                raise TimeoutError
            if not selector.select(0 if has_ended else min(seconds, _PAUSE)):
                if has_ended:
                    return b"".join(found)
                continue
            part = os.read(pipe.fileno(), 2**16)
            if not part:
                return b"".join(found)
            found.append(part)
            left -= len(part)
    return None


@dataclass(frozen=True)
class Question:
    """A piece of code on which the command of a tool is run once.

    Attributes:
        id: The id of the item.
        side: "original" or "transformed".
        draw: The number of the answer among the answers for the same code, counted from 0.
        variant: The number of the variant among those of the item; 0 for an original.
        fields: What the tool sees besides the code, as `fields_for` returns it.
    """

    id: str
    side: str
    arm: str
    draw: int
    language: str
    code: str
    variant: int = 0
    fields: Mapping[str, Any] = field(default_factory=dict)

    def key(self, command: Sequence[str]) -> str:
        """Return the key of the stored answer to this question: a hash."""
        # Without side and arm: two rules that give the same code share its answers.
        parts = json.dumps([list(command), self.language, self.code, self.draw, self.fields], sort_keys=True)
        return hashlib.sha256(parts.encode(errors="replace")).hexdigest()


def make_questions(
    items: Mapping[str, dict[str, Any]], variants: Iterable[dict[str, Any]], draws: int
) -> list[Question]:
    """List `draws` questions about each original and each variant, without items that have no variant.

    An item has the keys `language` and `source`. A variant has `id` (of the item), `text` and possibly `arm`.
    """
    asked: list[Question] = []
    originals = set()
    for variant in variants:
        item = items[variant["id"]]
        texts = {SIDES[1]: variant["text"]}
        if variant["id"] not in originals:
            originals.add(variant["id"])
            texts = {SIDES[0]: item["source"], **texts}
        for side, code in texts.items():
            is_variant = side == SIDES[1]
            arm, of_variant = (variant.get("arm") or "", variant.get("variant", 0)) if is_variant else ("", 0)
            fields = fields_for(item, variant if is_variant else None)
            # Answers are stored by code and number. A variant that equals its original gets other numbers and
            # thus its own answers: their difference shows the noise of the draws.
            first = draws if side == SIDES[1] and code == item["source"] else 0
            asked += [
                Question(variant["id"], side, arm, number, item["language"], code, of_variant, fields)
                for number in range(first, first + draws)
            ]
    return asked


class AnswerRecord:
    """The answers of one command to questions, in the file `answers.jsonl` of a folder."""

    def __init__(self, folder: Path, command: Sequence[str]) -> None:
        self._file = folder / ANSWERS
        self._command = list(command)
        self._lock = threading.Lock()
        self._known: dict[str, dict[str, Any]] = {}
        if self._file.exists():
            self._cut_half_a_line()
            for where, row in reading.objects(self._file):
                self._known[reading.text_under(row, "key", where)] = row
                status = reading.text_under(row, "status", where)
                if (status == "0") != isinstance(row.get("output"), str):
                    raise InputError(f"{where}: expected a text under output if the status is 0, else null")

    def _cut_half_a_line(self) -> None:
        """Remove the last line if an earlier run was killed while it wrote the line."""
        content = self._file.read_bytes()
        if content and not content.endswith(b"\n"):
            with self._file.open("r+b") as file:
                file.truncate(content.rfind(b"\n") + 1)

    def _ask(self, question: Question, runner: CommandRunner, timeout: float) -> None:
        """Run the tool on a piece of code, and append its answer to the file of answers."""
        words = [word.replace("{id}", question.id) for word in self._command]
        with item_folder(question.fields) as folder:
            variables = environment(question.id, question.language, question.draw, folder)
            status, output = runner.run(words, question.code, variables, timeout)
        key = question.key(self._command)
        # The output of a failed command is no answer.
        row = {"key": key, "status": status, "output": output if status == "0" else None}
        line = json.dumps(row, ensure_ascii=False).encode(errors="replace") + b"\n"
        with self._lock:
            with self._file.open("ab") as file:
                file.write(line)
                file.flush()
                # An answer may have cost money; it must survive a power failure, too.
                os.fsync(file.fileno())
            self._known[key] = row

    def ask_all(self, questions: Sequence[Question], parallel: int, timeout: float) -> Iterator[None]:
        """Ask the questions without a stored answer, `parallel` at a time; yield after each answer.

        A command that runs for more than `timeout` seconds counts as a crash.
        """
        unknown = {question.key(self._command): question for question in questions}
        for key in self._known:
            unknown.pop(key, None)
        # The runner is left first: it kills the commands for which the threads of the pool wait.
        with ThreadPoolExecutor(parallel) as pool, CommandRunner() as runner:
            futures = [pool.submit(self._ask, question, runner, timeout) for question in unknown.values()]
            try:
                for future in as_completed(futures):
                    future.result()
                    yield
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def count_crashes(self, questions: Sequence[Question]) -> Counter[str]:
        """Count the questions without an answer by the reason, such as "timeout" or "exit status 1"."""
        statuses = (self._known[question.key(self._command)]["status"] for question in questions)
        reasons = {TIMEOUT: "timeout", TOO_LONG: f"answer above {LARGEST_OUTPUT >> 20} MiB"}
        return Counter(reasons.get(status, f"exit status {status}") for status in statuses if status != "0")

    def draws(self, questions: Sequence[Question]) -> list[Draw]:
        """Return the stored answers to questions, in order and not judged."""
        outputs = [self._known[question.key(self._command)]["output"] for question in questions]
        return [
            Draw(
                question.id,
                question.side,
                question.draw,
                None,
                output,
                "",
                question.arm,
                "",
                question.variant,
            )
            for question, output in zip(questions, outputs, strict=True)
        ]
