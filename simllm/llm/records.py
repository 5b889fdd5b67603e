"""Records on disk: JSON objects that are appended to a file; replies, and other values, in such files."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from simllm.errors import InputError
from simllm.io import reading
from simllm.io.output_folder import OutputFolder
from simllm.io.tables import on_one_line
from simllm.llm.endpoint import LostReplyError, RawReply
from simllm.llm.model import content_hash
from simllm.llm.reply import Reply, from_row, parse_reply, to_row

_BEGINNINGS = (b'{"id":', b'{"sample":', b'{"key":')  # of all lines that are written here


def add_to_folder(folder: Path, name: str) -> Path:
    """Return the file of a log in a folder that simllm made; a missing file is added to the folder."""
    if name not in OutputFolder(folder).check_addition(name) or not (folder / name).exists():
        OutputFolder(folder).write(name, "")
    return folder / name


class JsonLinesLog:
    """A file of JSON lines to which threads of one process append. The first line creates a missing file.

    With `is_synced`, `append` waits until the line is on the disk. Otherwise, a power failure may lose the
    last lines, but a killed process loses nothing. `rows` are the objects that were in the file when it was
    opened, each with its location for error messages.
    """

    def __init__(self, file: Path, is_synced: bool = False) -> None:
        # A link could lead to a file of the user, to which simllm would append.
        if file.is_symlink() or (file.exists() and not file.is_file()):
            raise InputError(f"{file}: is a link, or no file; records go to a file of their own")
        self._file: BinaryIO | None = None
        try:
            content = file.read_bytes() if file.exists() else b""
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror})") from None
        # A killed process may have left half a line, which the first `append` removes.
        self._size, self._end = len(content), content.rfind(b"\n") + 1
        half = content[self._end :]
        if half and not any(half.startswith(one[: len(half)]) for one in _BEGINNINGS):
            raise InputError(f"{file}: was not written by simllm; move it away")
        self.rows = _objects(content[: self._end], file)
        self._name, self._is_synced = file, is_synced
        self._writing, self._syncing = threading.Lock(), threading.Lock()
        self._written = self._synced = 0

    def append(self, *rows: dict[str, Any]) -> None:
        """Append objects as lines."""
        if not rows:
            return
        lines = b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)
        try:
            with self._writing:
                if self._file is None:
                    self._file = self._name.open("ab")
                    # To cut off what another process wrote meanwhile would lose replies that were paid for.
                    if os.fstat(self._file.fileno()).st_size != self._size:
                        raise InputError(f"{self._name}: another process is writing there")
                    self._file.truncate(self._end)
                self._file.write(lines)
                self._file.flush()
                self._written += 1
                own = self._written
            # Threads that append at the same time share one wait: the first syncs the lines of all.
            with self._syncing:
                if self._is_synced and self._synced < own:
                    # Read before the sync: lines written during it may not be on the disk.
                    target = self._written
                    os.fsync(self._file.fileno())
                    self._synced = target
        except OSError as error:
            raise InputError(f"{self._name}: cannot be written ({error.strerror})") from None

    def close(self) -> None:
        """Close the file, after the lines that `append` failed to write, if there are any."""
        try:
            if self._file is not None:
                self._file.close()
        except OSError as error:
            raise InputError(f"{self._name}: cannot be written ({error.strerror})") from None


def _objects(content: bytes, file: Path) -> list[tuple[str, dict[str, Any]]]:
    try:
        lines = content.decode().split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 ({error.reason})") from None
    places = (f"{file}, line {number}" for number in range(1, len(lines) + 1))
    return [(where, reading.parsed(line, where)) for where, line in zip(places, lines, strict=True)]


@dataclass(frozen=True)
class Slot:
    """The place of a reply in a study, under which the reply is recorded with its request.

    Attributes:
        item: The id of the item; "" if equal requests share their replies.
        sample: The number of the reply, or of the attempt, among those to the same request, from 1.
        round: The number of the request in a conversation, from 1.
    """

    item: str = ""
    sample: int = 1
    round: int = 1

    def __str__(self) -> str:
        words = [f"item {on_one_line(self.item)}"] if self.item else []
        return ", ".join(
            [*words, f"sample {self.sample}", *([f"round {self.round}"] if self.round > 1 else [])]
        )


class ReplyRecord:
    """Replies in a file of JSON lines, each on the disk before it is used. Several threads may use it.

    A line has the request (with a hash in place of its text), the slot, and the reply or its failure. With
    `reads_only`, the file is one that an earlier run wrote, and replies are found by the text of the request
    and the slot alone, whatever model and sampling they have. Without a file, replies live in memory.

    Attributes:
        lost: Why a reply was lost, for each request whose reply is still missing.
    """

    def __init__(self, file: Path | None = None, *, reads_only: bool = False) -> None:
        self.file, self._reads_only = file, reads_only
        self._rows: dict[tuple[str, Slot], dict[str, Any]] = {}
        self._has_older = False
        self.lost: dict[tuple[str, Slot], str] = {}
        self._log: JsonLinesLog | None = None
        rows: Iterable[tuple[str, dict[str, Any]]] = ()
        if file is not None and reads_only:
            rows = reading.objects(file)
        elif file is not None:
            self._log = JsonLinesLog(file, is_synced=True)
            rows = self._log.rows
        for where, row in rows:
            if reads_only and isinstance(row.get("request"), str):
                self._has_older = True
                older, reply = _read_older(row, where)
                self._rows[older] = reply
                continue
            key = self._key_of(row, where)
            if isinstance(row.get("lost"), str):
                self.lost[key] = row["lost"]
            else:
                self._rows[key] = row

    def add_older(self, row: dict[str, Any], where: str) -> None:
        """Take a row of another file into the memory, unless the record has a reply in its place."""
        self._rows.setdefault(self._key_of(row, where), row)

    def _key_of(self, row: dict[str, Any], where: str) -> tuple[str, Slot]:
        """Check a row that was read, and return its key."""
        request, id_ = row.get("request"), row.get("id", "")
        slot = Slot(str(id_), row.get("sample", 1), row.get("round", 1))
        if not isinstance(request, dict) or type(slot.sample) is not int or type(slot.round) is not int:
            raise InputError(
                f"{where}: is no recorded reply; expected the keys request, id, sample and reply"
            )
        if "lost" not in row:
            try:
                from_row(row)
            except ValueError as error:
                raise InputError(f"{where}: {error}") from None
        return self.key(request, slot)

    def key(self, request: dict[str, Any], slot: Slot) -> tuple[str, Slot]:
        """Return what identifies a reply: equal keys share their reply."""
        if self._reads_only:
            return str(request.get("messages", request.get("prompt"))), slot
        return content_hash(request), slot

    def find(self, request: dict[str, Any], slot: Slot) -> dict[str, Any] | None:
        """Return the row of a reply; None if there is none. `request` has the hash in place of its text."""
        return self._rows.get(self.key(request, slot))

    def find_older(self, request: dict[str, Any], slot: Slot) -> dict[str, Any] | None:
        """Return the row of a reply that the first version of `simllm repair` recorded.

        `request` has its text, unlike that of `find`.
        """
        if not self._has_older:
            return None
        asked = {name: request.get(name) for name in ("model", "messages")}
        # All requests of these runs had the temperature 1, and their hash covers it.
        return self._rows.get((content_hash({**asked, "temperature": 1, "top_p": 1}), slot))

    def keep(self, request: dict[str, Any], slot: Slot, reply: Reply) -> None:
        """Record a reply; wait until it is on the disk."""
        self.keep_all([(request, slot, reply)])

    def keep_all(self, replies: Iterable[tuple[dict[str, Any], Slot, Reply]]) -> None:
        """Record replies with one wait for the disk."""
        rows = {
            self.key(request, slot): {**_place(request, slot), **to_row(reply)}
            for request, slot, reply in replies
        }
        if self._log is not None:
            self._log.append(*rows.values())
        self._rows |= rows
        for key in rows:
            self.lost.pop(key, None)

    def lose(self, request: dict[str, Any], slot: Slot, reason: str) -> None:
        """Record that a reply was lost even after retries; a later run may ask for it again."""
        if self._log is not None:
            self._log.append({**_place(request, slot), "lost": reason})
        self.lost[self.key(request, slot)] = reason

    def was_lost(self, request: dict[str, Any], slot: Slot) -> bool:
        """Return whether an earlier run lost this reply."""
        return self.key(request, slot) in self.lost

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of all replies."""
        return list(self._rows.values())

    @property
    def api(self) -> str:
        """The API of the recorded requests: "chat" or "completions"."""
        # Rows of the first version of `simllm repair` have no request, and are of chats.
        is_plain = any("prompt" in row.get("request", ()) for row in self._rows.values())
        return "completions" if is_plain else "chat"

    def has_others(self, places: Iterable[tuple[dict[str, Any], Slot]]) -> bool:
        """Return whether there are replies in other places (requests and slots) than these."""
        return bool(self._rows.keys() - {self.key(*place) for place in places})

    def close(self) -> None:
        """Close the file."""
        if self._log is not None:
            self._log.close()


def _read_older(row: dict[str, Any], where: str) -> tuple[tuple[str, Slot], dict[str, Any]]:
    """Read a row of the first version of `simllm repair`: its key, and the row in today's form."""
    item, body = (reading.text_under(row, name, where) for name in ("item", "body"))
    numbers = [reading.value_under(row, name, where, "a number") for name in ("attempt", "round", "status")]
    if not all(type(number) is int for number in numbers):
        raise InputError(f"{where}: attempt, round and status must be whole numbers")
    attempt, round_, status = numbers
    try:
        reply = parse_reply(RawReply(status, body))
    except LostReplyError as error:
        raise InputError(f"{where}: {error}") from None
    return (row["request"], Slot(item, attempt, round_)), to_row(reply)


def _place(request: dict[str, Any], slot: Slot) -> dict[str, Any]:
    place: dict[str, Any] = {"id": slot.item} if slot.item else {}
    place |= {"sample": slot.sample, **({"round": slot.round} if slot.round > 1 else {})}
    return {**place, "request": request}


class KeptValues:
    """Cache of JSON values by key, in a file of JSON lines. Several threads may use it at the same time.

    `source` is a folder with another cache of the same name, such as that of an earlier run, which is read
    only.
    """

    def __init__(self, folder: Path, name: str, source: Path | None = None) -> None:
        self._log = JsonLinesLog(add_to_folder(folder, name))
        # The own file comes last, because its values count before those of the other file.
        rows = [
            *(reading.objects(source / name) if source and (source / name).exists() else ()),
            *self._log.rows,
        ]
        self._values = {reading.text_under(row, "key", where): row.get("value") for where, row in rows}
        self._under_way: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return the value of a key; if the key is not in the cache, call `compute` and store its result.

        If several threads ask for the same missing key, one thread computes the value, and the others wait.
        """
        with self._lock:
            if key in self._values:
                return self._values[key]
            # A lock for each key: a slow computation must not keep other keys waiting.
            own = self._under_way.setdefault(key, threading.Lock())
        with own:
            if key not in self._values:
                value = compute()
                self._log.append({"key": key, "value": value})
                self._values[key] = value
            return self._values[key]

    def close(self) -> None:
        """Close the file of the cache."""
        self._log.close()
