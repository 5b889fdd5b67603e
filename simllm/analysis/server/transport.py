"""Transport of requests: the socket, the gate with its limits and token, and the end by a signal."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import ipaddress
import math
import os
import re
import selectors
import signal
import socket
from collections.abc import Callable, Collection, Iterator
from types import FrameType

import uvicorn
from fastapi import HTTPException
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from simllm.analysis.server.batches import Batcher
from simllm.errors import InputError
from simllm.io import loopback_server, tables

_OPEN = ("/health", "/docs", "/openapi.json")  # without a token: they tell nothing about the texts


class Gate:
    """Gate before the addresses: it checks token and limits, and counts requests."""

    def __init__(
        self, app: ASGIApp, batcher: Batcher, token: str | None, host: str, paths: Collection[str]
    ) -> None:
        self.app, self.batcher, self.token, self.paths = app, batcher, token, paths
        self.host = _in_address(host).lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or hand it on with a limited body."""
        started, status = asyncio.get_running_loop().time(), 500
        scope["simllm.deadline"] = started + self.batcher.limits.timeout

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self.batcher.stopping:  # the client must send no more requests on this connection
                    MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        try:
            if refusal := self._refusal(scope["method"], scope["path"], Headers(scope=scope)):
                await refusal(scope, receive, answer)
            else:
                await self.app(scope, self._limited(receive, scope["simllm.deadline"]), answer)
        finally:
            path = scope["path"] if scope["path"] in self.paths else "other"
            measured = self.batcher.measured
            measured.requests.labels(path, str(status)).inc()
            measured.seconds.labels(path).observe(asyncio.get_running_loop().time() - started)

    def _refusal(self, method: str, path: str, headers: Headers) -> JSONResponse | None:
        """Return the answer to a request that is refused by its headers."""
        if self.token is None:
            # Another site can make its own name lead to this machine (DNS rebinding), but not change `Host`.
            host = headers.get("Host", "").strip().lower()
            if not (loopback_server.is_loopback(host) or re.sub(":[0-9]{1,5}$", "", host) == self.host):
                own = "" if loopback_server.is_loopback(self.host) else f"{self.host}, "
                expected = f"{own}127.0.0.1 or localhost; a server with a token answers to any name"
                return JSONResponse({"error": f"Host: expected {expected}"}, 403)
        elif path not in _OPEN and not self._knows_token(headers.get("Authorization", "")):
            message = "Authorization: expected Bearer and the token, or the token as the password of Basic"
            return JSONResponse({"error": message}, 401, {"WWW-Authenticate": "Bearer, Basic"})
        if method != "POST":
            return None
        # Pages of other sites cannot send this type without asking first.
        kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            message = f"Content-Type {kind or 'is missing'}: expected application/json"
            return JSONResponse({"error": tables.on_one_line(message)}, 415)
        if int(headers.get("Content-Length", 0)) > self.batcher.limits.max_body:
            return JSONResponse({"error": self._too_large()}, 413)
        return None

    def _too_large(self) -> str:
        return f"the body: expected at most {self.batcher.limits.max_body:,} bytes"

    def _knows_token(self, authorization: str) -> bool:
        """Compare the token of a request, in a time that does not depend on the token."""
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "basic":  # for clients that know user and password in an address alone
            try:
                given = base64.b64decode(given).decode().partition(":")[2]
            except ValueError:
                return False
        elif scheme.lower() != "bearer":
            return False
        assert self.token is not None
        return hmac.compare_digest(given.strip().encode(), self.token.encode())

    def _limited(self, receive: Receive, deadline: float) -> Receive:
        """Return a function that receives the body of a request, within the limits of size and time."""
        received, is_whole = 0, False

        async def limited() -> Message:
            nonlocal received, is_whole
            if is_whole:  # what comes now is the end of the connection
                return await receive()
            try:
                async with asyncio.timeout_at(min(deadline, self.batcher.last_bodies)) as limit:
                    self.batcher.bodies.add(limit)
                    message = await receive()
            except TimeoutError:
                if self.batcher.last_bodies < deadline:
                    raise HTTPException(503, "the server is stopping, and the body did not arrive") from None
                seconds = f"{self.batcher.limits.timeout:g}"
                raise HTTPException(408, f"the body did not arrive within {seconds} seconds") from None
            finally:
                self.batcher.bodies.discard(limit)
            received += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            if received > self.batcher.limits.max_body:
                raise HTTPException(413, self._too_large())
            return message

        return limited


def _in_address(host: str) -> str:
    """Return a host as it stands in a URL and in the header `Host`."""
    return f"[{host}]" if ":" in host else host


def listen(host: str, port: int, has_token: bool) -> tuple[socket.socket, str]:
    """Open a socket that listens, and return its address as a URL; port 0 is any free port.

    InputError if that is impossible, or if other machines could reach a server without a token.
    """
    if not 0 <= port <= 65535:
        raise InputError(f"port {port}: expected a number from 0 to 65535")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "no name of a machine"
        raise InputError(f"host {host!r}: cannot be found ({reason})") from None
    if not (has_token or ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback):
        raise InputError(
            f"host {host!r}: other machines could use the server; it needs a token, from --token-file FILE "
            "or the environment variable SIMLLM_TOKEN"
        )
    try:
        listener = socket.create_server(address, family=family, backlog=2048)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(f"{host}, port {port}: cannot be used ({reason}); name another") from None
    port = listener.getsockname()[1]
    return listener, f"http://{_in_address(host)}:{port}/"


# Seconds; together, they are less than the 5 after `timeout` that docs/serving.md states.
_LAST_CONNECTIONS = 0.5
_LAST_REQUESTS = 0.5
_LAST_ANSWERS = 1  # after `timeout`, rounded up
_LAST_BATCH = 2
_LAST_BODIES = 5  # within `timeout`: a client that stopped in the middle must not hold up the end
_PASSES = 3  # of the event loop, from a connection's arrival until the server has it


class _Server(uvicorn.Server):
    """Server that answers all requests which have arrived before it ends by a signal."""

    def __init__(self, config: uvicorn.Config, batcher: Batcher, say: Callable[[str], None]) -> None:
        super().__init__(config)
        self.batcher, self.say = batcher, say

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End by signals during a `with` block; uvicorn itself would end the process by the signal then."""
        names = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        before = {number: signal.getsignal(number) for number in numbers}
        caught = [number for number, handler in before.items() if handler is not signal.SIG_IGN]

        def stop(number: int, frame: FrameType | None) -> None:
            for each in caught:
                signal.signal(each, signal.SIG_DFL)  # a second signal ends the process at once
            self.should_exit = True

        for number in caught:
            signal.signal(number, stop)
        try:
            yield
        finally:
            for number in caught:
                signal.signal(number, before[number])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, answer what has arrived, and end."""
        if not self.batcher.failure:
            self.say("stopping when all requests are answered; a second signal ends at once")
        self.batcher.stopping = True
        await self._take_waiting_connections()
        for server in self.servers:
            server.close()
        # A client may just be sending a request on an idle connection; the answer tells it to send no more.
        await asyncio.sleep(_LAST_REQUESTS)
        self.batcher.last_bodies = asyncio.get_running_loop().time() + _LAST_BODIES
        for limit in (each for each in self.batcher.bodies if not each.expired()):
            limit.reschedule(min(limit.when() or math.inf, self.batcher.last_bodies))
        await super().shutdown(sockets)

    async def _take_waiting_connections(self) -> None:
        """Accept the connections that the kernel has already made: closing the listener would reset them.

        A pass of the event loop finds a connection, and two more accept it and give it to the server, which
        must not be closed then. So three passes in a row must find none.
        """
        loop, quiet = asyncio.get_running_loop(), 0
        end = loop.time() + _LAST_CONNECTIONS
        listeners = [each for server in self.servers for each in server.sockets]
        with selectors.DefaultSelector() as waiting:
            for listener in listeners:
                waiting.register(listener.fileno(), selectors.EVENT_READ)
            while quiet < _PASSES and loop.time() < end:
                await asyncio.sleep(0)
                quiet = 0 if waiting.select(0) else quiet + 1
        if quiet < _PASSES:  # clients connect without a pause
            with contextlib.suppress(NotImplementedError):  # Windows
                for listener in listeners:
                    loop.remove_reader(listener.fileno())
            for _ in range(_PASSES):
                await asyncio.sleep(0)


def serve(app: ASGIApp, batcher: Batcher, listener: socket.socket, say: Callable[[str], None]) -> None:
    """Answer requests until a signal comes; `say` tells people what happens.

    Raises what the batcher met when it loaded the metric.
    """
    config = uvicorn.Config(
        app,
        http="h11",  # the default is what happens to be installed
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        # Longer than the 60 seconds for which balancers keep idle connections and may use them again.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=math.ceil(batcher.limits.timeout) + _LAST_ANSWERS,
    )
    server = _Server(config, batcher, say)

    def loaded() -> None:
        if batcher.failure:
            server.should_exit = True
        elif batcher.metric:
            say(f"ready, {batcher.metric.signature}")

    batcher.start(loaded)
    try:
        asyncio.run(server.serve([listener]))
    finally:
        # What is still scored now is wanted by nobody; the thread ends after its batch, or with the process.
        batcher.end(_LAST_BATCH)
    if batcher.failure:
        raise batcher.failure
