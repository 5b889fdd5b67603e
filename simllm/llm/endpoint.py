"""A client of OpenAI-compatible endpoints: requests, retries, and the parsing of replies.

The server is not trusted: its replies have a largest size, it cannot send the client elsewhere, and the API
key is removed from all that it says.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import math
import os
import random
import re
import select
import socket
import ssl
import threading
import time
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import simllm
from simllm.errors import IncompleteError, InputError, OptionError
from simllm.io.tables import on_one_line

LARGEST_REPLY = 1 << 24  # bytes of a reply, after decompression
_URL = "OPENAI_BASE_URL"
_LEAST_KEY = 8  # characters; a shorter key could be part of any word
_PIECE = 1 << 16  # bytes that are read at once
_LARGEST_ERROR = 1 << 16  # bytes of an error's body that are read
_CONNECTION = 10.0  # seconds to connect
_TIMEOUT = 600.0  # seconds without a byte
_LONGEST = 3600.0  # seconds for a reply with all its retries
_LONGEST_WAIT = 600.0  # seconds between two tries, whatever Retry-After asks for
_MOST_REDIRECTS = 3
_SHOWN = 200  # characters of the server's message in an error
# Words in which servers say that a conversation is longer than the model's context.
_OVERFLOW = re.compile(
    r"context[\s_-]*(length|size|window)|maximum context|exceed_context|(prompt|input) (is )?too long",
    re.IGNORECASE,
)
_MODERATED = re.compile(r"moderation|flagged", re.IGNORECASE)
NO_ANSWER = "the endpoint does not answer as /chat/completions or /completions should"
# Forms of keys and passwords, also of those that the server knows and this process does not.
_SECRET = re.compile(
    r"(?P<before>\bbearer\s+|\bbasic\s+|://(?=[^\s/@]*@)|[?&](?:[\w-]*(?:key|token|secret|password|sig))=)"
    r"[^\s\"'&@,;)]+|\b(?:sk|pk|rk|gsk|hf|xai)[-_][\w*.-]{6,}",
    re.IGNORECASE,
)
_HIDDEN = "[API key]"


def redact(text: str, key: str) -> str:
    """Replace an API key in a text by "[API key]", in all spellings in which a server may echo the key."""
    # A model's reply may have the letters of a short key by chance, so that such a key stays.
    return text if len(key) < _LEAST_KEY else re.sub(_spellings(key), _HIDDEN, text, flags=re.IGNORECASE)


def redact_message(text: str, key: str) -> str:
    """Shorten a message to one line without control characters, keys and passwords, also short keys."""
    if 0 < len(key) < _LEAST_KEY:
        text = re.sub(rf"(?<!\w)(?:{_spellings(key)})(?!\w)", _HIDDEN, text)
    hidden = _SECRET.sub(lambda found: f"{found['before'] or ''}{_HIDDEN}", redact(text, key))
    return on_one_line(hidden)[:_SHOWN]


def _spellings(key: str) -> str:
    forms = {key, json.dumps(key)[1:-1], quote(key, safe=""), base64.b64encode(key.encode()).decode()}
    return "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))


class LostReplyError(IncompleteError):
    """Error for a model's reply that did not arrive or cannot be read. A later request may succeed."""


class StoppedError(LostReplyError):
    """Error for a request that is not sent, because the run has stopped or a limit is reached."""


class RefusedRequestError(LostReplyError):
    """Error for a single request that gets no usable reply, however often it is repeated."""


@dataclass(frozen=True)
class RawReply:
    """A server's reply, before it is parsed.

    Attributes:
        status: The HTTP status: 200; or 400 or 413 if the conversation is too long for the model.
    """

    status: int
    body: str


class _Connection(http.client.HTTPConnection):
    """A connection that sends head and body of a request at once: a fast server then wakes up once."""

    holds_head = False
    _head = b""

    def send(self, data: Any) -> None:
        """Send data; the head of a request waits for its body."""
        if self.holds_head:
            self._head, self.holds_head = data, False
            return
        head, self._head = self._head, b""
        super().send(head + data)


class _SecureConnection(_Connection, http.client.HTTPSConnection):
    pass


class EndpointClient:
    """Client of an OpenAI-compatible endpoint. Several threads may use it at the same time.

    The address is `base_url`, such as "http://localhost:8000/v1", or OPENAI_BASE_URL of the environment. The
    API key is the environment variable `key_variable`; in replies and error messages, "[API key]" replaces
    it. A failed request is repeated up to `retries` times.
    """

    def __init__(self, base_url: str | None, retries: int = 5, key_variable: str = "OPENAI_API_KEY") -> None:
        url = base_url or os.environ.get(_URL, "")
        if not url:
            raise OptionError(f"expected {{base_url}} URL, or {_URL}: where should the requests go?")
        self._key = os.environ.get(key_variable, "").strip()
        try:
            parts = urlsplit(url)
            is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if any(sign in url for sign in "@?#"):  # a user, a query or a fragment
            raise InputError(
                f"the address of the endpoint has a secret in it; the key goes into {key_variable}"
            )
        if not is_address or not re.fullmatch("[!-~]+", url):
            raise InputError(f"{self._short(url)}: expected an address such as http://localhost:8000/v1")
        if retries < 0:
            raise OptionError("{retries} {number}: expected a whole number from 0", number=retries)
        if not re.fullmatch("[!-~]*", self._key):
            raise InputError(
                f"{key_variable}: expected a key of ASCII letters, digits and signs, without blanks"
            )
        self._address, self._retries = parts, retries
        # Documentation shows whole addresses, too; without a path, all servers offer the API below /v1.
        path = re.sub(r"(/chat)?/completions\Z", "", parts.path.rstrip("/"))
        self._base = path or "/v1"
        path = re.sub(r"[^/]{16,}", "\N{HORIZONTAL ELLIPSIS}", parts.path)  # may be a secret
        self._url = self._short(f"{parts.scheme}://{parts.netloc}{path}")
        self._proxy = _proxy(parts)
        self._context = ssl.create_default_context() if parts.scheme == "https" else None
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._idle: list[_Connection] = []
        self._busy: dict[_Connection, float] = {}  # with the time at which each is ended
        self._watcher: threading.Thread | None = None
        self._is_reached, self._pause_ends = False, 0.0

    def ask(self, request: dict[str, Any]) -> RawReply:
        """Send a request, with messages or with a prompt, and return the server's reply.

        `InputError` means that all requests are useless: they are refused (HTTP status 401, 403 or 404) or
        redirected to another server, or the first one reaches no server. `RefusedRequestError` means that
        this request is. After retries, or if the client is closed, there is a `LostReplyError`.
        """
        if not self._is_reached:
            self.reach()
        body, ends = json.dumps(request).encode(), time.monotonic() + _LONGEST
        path = f"{self._base}{'/chat' if 'messages' in request else ''}/completions"
        for tries in range(self._retries + 1):
            # Exponential; the random factor below keeps threads from coming back all together.
            wait = 0.5 * 2**tries
            try:
                status, headers, text = self._post(path, body, ends)
            except InputError:  # it is a ValueError
                raise
            except (OSError, http.client.HTTPException, zlib.error, ValueError) as error:
                problem = self._short(str(error) or type(error).__name__)
                if time.monotonic() >= ends:
                    raise self._too_late() from None
            else:
                is_answered = 200 <= status < 300
                if is_answered and _has_choices(text):
                    return RawReply(200, redact(text, self._key))
                told = self._short(error_message(text))
                problem = f"HTTP status {status}: {told}".rstrip(": ")
                # Gateways moderate single texts with the status of a wrong key.
                if status == 403 and _MODERATED.search(text):
                    raise RefusedRequestError(problem)
                # A wrong key or address, or an empty account, stops all requests: so must the run.
                if status in (401, 402, 403, 404, 405):
                    raise InputError(f"the endpoint refuses: {problem}")
                if status in (400, 413) and _OVERFLOW.search(text):
                    return RawReply(status, redact(text, self._key))
                if is_answered:  # by a gateway in trouble: some send errors with status 200
                    problem = NO_ANSWER + (f": {told}" if told else "")
                # These statuses are of the moment: time-outs, conflicts, too early, too many.
                elif status not in (408, 409, 425, 429) and status < 500:
                    raise RefusedRequestError(problem)
                wait *= 4 if status == 429 else 1  # most rate limits are those of a minute
                wait = _retry_after(headers, wait)
                if status in (429, 503):  # the other threads need not find out by themselves
                    self._pause_ends = max(self._pause_ends, time.monotonic() + wait)
            if tries < self._retries:
                self._wait(min(wait, _LONGEST_WAIT) * random.uniform(1, 1.25), ends)
        raise LostReplyError(problem)

    def reach(self) -> None:
        """Check that the server can be reached, so that a wrong address is found at once, without retries."""
        try:
            connection = self._take(time.monotonic() + _CONNECTION)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise InputError(f"{self._url}: no server can be reached: {self._short(str(error))}") from None
        # The first request uses this connection, so that the check costs nothing.
        self._give_back(connection, is_usable=True)
        self._is_reached = True

    def close(self) -> None:
        """End unfinished requests, and close all connections. Closing the client again has no effect."""
        self._closed.set()
        with self._lock:
            for connection in self._busy:
                _interrupt(connection)
            while self._idle:
                self._idle.pop().close()

    def _post(self, target: str, body: bytes, ends: float) -> tuple[int, http.client.HTTPMessage, str]:
        """Send a request once, and return the status, the headers and the body of the reply."""
        self._wait(self._pause_ends - time.monotonic(), ends)
        for _ in range(_MOST_REDIRECTS + 1):
            status, headers, data = self._exchange(target, body, ends)
            if status not in (301, 302, 303, 307, 308):
                # JSON is UTF-8; the charset of the headers could name any of Python's codecs.
                return status, headers, data.decode("utf-8-sig", "replace")
            # The request is sent again as it is, although browsers drop the body after 302 and 303.
            target = self._redirected(target, headers.get("Location", ""))
        raise RefusedRequestError("the endpoint redirects too often")

    def _redirected(self, target: str, location: str) -> str:
        """Return the path to which the server redirects; refuse other servers, which would get the key."""
        own = self._address
        try:
            new = urlsplit(urljoin(f"{own.scheme}://{own.netloc}{target}", location))
            is_own = (new.scheme, new.hostname, _port(new)) == (own.scheme, own.hostname, _port(own))
            place = f"{new.scheme}://{new.hostname}:{_port(new)}"
        except ValueError:
            is_own, place = False, "an address that cannot be read"
        if not is_own:
            raise InputError(
                f"{self._url}: redirects to {self._short(place)}; refused, because the texts and the key "
                "would go there"
            )
        return new.path + (f"?{new.query}" if new.query else "")

    def _exchange(self, target: str, body: bytes, ends: float) -> tuple[int, http.client.HTTPMessage, bytes]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        headers |= {"Accept-Encoding": "identity", "User-Agent": f"simllm/{simllm.__version__}"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        if self._proxy and not self._context:  # a proxy for http wants the whole address
            target = f"http://{self._address.netloc}{target}"
            headers |= _proxy_headers(self._proxy)
        connection, is_usable = self._take(ends), False
        try:
            connection.holds_head = True
            connection.request("POST", target, body, headers)
            response = connection.getresponse()
            data, is_whole = _read(response)
            is_usable = is_whole and not response.will_close
            return response.status, response.headers, data
        finally:
            self._give_back(connection, is_usable)

    def _take(self, ends: float) -> _Connection:
        """Take an idle connection, or make one; it is interrupted at the time `ends`."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
                if connection is not None and not _is_readable(connection):
                    self._busy[connection] = ends
                    break
            if connection is None:
                connection = self._connect(ends)
                break
            connection.close()  # the server has closed it
        # `close` may have run while this thread connected; it knew nothing of the connection.
        if self._closed.is_set():
            self._give_back(connection, is_usable=False)
            raise _stopped()
        return connection

    def _connect(self, ends: float) -> _Connection:
        """Open a connection to the server, or to the proxy that the environment names, before a time ends."""
        place = self._proxy or self._address
        host, port = place.hostname or "", _port(place)
        connection: _Connection
        if self._context:
            connection = _SecureConnection(host, port, timeout=_CONNECTION, context=self._context)
            if self._proxy:
                own = self._address
                connection.set_tunnel(own.hostname or "", _port(own), _proxy_headers(self._proxy))
        else:
            connection = _Connection(host, port, timeout=_CONNECTION)
        with self._lock:
            self._busy[connection] = ends
            if self._watcher is None:
                # A server or proxy may send a byte each minute for ever; no time-out of a socket notices it.
                self._watcher = threading.Thread(target=self._watch, daemon=True)
                self._watcher.start()
        try:
            connection.connect()
            # Connecting must be quick; a model may think for minutes before the first byte.
            connection.sock.settimeout(_TIMEOUT)
        except BaseException:
            self._give_back(connection, is_usable=False)
            raise
        return connection

    def _give_back(self, connection: _Connection, is_usable: bool) -> None:
        with self._lock:
            self._busy.pop(connection, None)
            if is_usable and not self._closed.is_set():
                self._idle.append(connection)
                return
        connection.close()

    def _wait(self, seconds: float, ends: float) -> None:
        """Wait before a request, unless the client is closed or the time for the reply is over."""
        if time.monotonic() + seconds > ends:
            raise self._too_late()
        if self._closed.wait(max(0.0, seconds)) if seconds > 0 else self._closed.is_set():
            raise _stopped()

    def _watch(self) -> None:
        """Interrupt connections whose time is over."""
        while not self._closed.wait(1.0):
            with self._lock:
                for connection, ends in self._busy.items():
                    if time.monotonic() > ends:
                        _interrupt(connection)

    def _too_late(self) -> LostReplyError:
        return LostReplyError(f"no whole reply came in {_LONGEST:,.0f} seconds")

    def _short(self, text: str) -> str:
        return redact_message(text, self._key)


def _stopped() -> StoppedError:
    return StoppedError("the run has stopped")


def _interrupt(connection: http.client.HTTPConnection) -> None:
    """End all reads and writes of a connection that another thread uses."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # it is closed already
        # Not SSLSocket.shutdown, which takes the TLS state away under the other thread.
        socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)


def _is_readable(connection: http.client.HTTPConnection) -> bool:
    """Return whether an idle connection has something to read: usually, the server has closed it."""
    poll = select.poll()
    try:
        poll.register(connection.sock, select.POLLIN)
        return bool(poll.poll(0))
    except (OSError, ValueError):
        return True


def _read(response: http.client.HTTPResponse) -> tuple[bytes, bool]:
    """Read the body of a reply, up to a largest size, and whether it is whole: a long error is not."""
    coding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("identity", "", "gzip", "x-gzip", "deflate"):
        raise RefusedRequestError(
            f"a reply in the encoding {on_one_line(coding)[:20]}, which was not asked for"
        )
    # 47 takes the headers of both gzip and zlib.
    unpack = zlib.decompressobj(47) if coding.endswith(("gzip", "deflate")) else None
    is_error = response.status >= 300
    most = _LARGEST_ERROR if is_error else LARGEST_REPLY
    expected = response.length
    data, received = bytearray(), 0
    while len(data) <= most and received <= most and (piece := response.read(_PIECE)):
        received += len(piece)
        # Never more than the largest size at once: a few KB can stand for many GB.
        data += unpack.decompress(piece, most + 1 - len(data)) if unpack else piece
    if len(data) > most or received > most:
        if is_error:
            return bytes(data[:most]), False
        raise RefusedRequestError(f"a reply of more than {LARGEST_REPLY >> 20} MiB")
    if (expected is not None and received < expected) or (unpack and data and not unpack.eof):
        raise ConnectionError("the connection was cut")
    return bytes(data), True


def _retry_after(headers: http.client.HTTPMessage, otherwise: float) -> float:
    """Return the seconds that the header Retry-After asks to wait: a number, or a date."""
    value = headers.get("Retry-After", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except (ValueError, TypeError, OverflowError):
            return otherwise
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (date - datetime.now(UTC)).total_seconds()
    # Some servers always ask for 0 seconds, or name a time that is over: all tries would be gone at once.
    return min(seconds, _LONGEST_WAIT) if 0 < seconds < math.inf else otherwise


def error_message(body: str) -> str:
    """Return the message in the body of an error; the body itself if it is in no known format."""
    try:
        found = json.loads(body)
        error = found.get("error", found)
        message = error if isinstance(error, str) else error.get("message")
    except (ValueError, AttributeError, RecursionError):
        return body
    return message if isinstance(message, str) and message else body


def _has_choices(body: str) -> bool:
    """Return whether the body of a reply may be a model's."""
    try:
        found = json.loads(body)
        return isinstance(found, dict) and bool(found.get("choices"))
    except (ValueError, RecursionError):
        return False


def _port(address: SplitResult) -> int:
    return address.port or (443 if address.scheme == "https" else 80)


def _proxy(address: SplitResult) -> SplitResult | None:
    """Return the proxy for an address, from environment variables such as HTTPS_PROXY."""
    # A proxy would look for a server on its own machine; and what goes to this machine concerns nobody else.
    if address.hostname in ("localhost", "127.0.0.1", "::1"):
        return None
    proxies = getproxies()
    name = proxies.get(address.scheme) or proxies.get("all")
    if not name or proxy_bypass(f"{address.hostname}:{_port(address)}"):
        return None
    try:
        proxy = urlsplit(name if "://" in name else f"http://{name}")
        is_usable = proxy.scheme == "http" and bool(proxy.hostname) and proxy.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise InputError(
            "the proxy of the environment (HTTP_PROXY or HTTPS_PROXY): expected http://HOST:PORT"
        )
    return proxy


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}
