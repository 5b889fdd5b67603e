"""A web server for the files of one folder, which only this machine can reach."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from simllm.errors import InputError

_HOST = "127.0.0.1"


class _Server(ThreadingHTTPServer):
    """Server that ends a connection in silence if the client goes away or sends what nobody expects."""

    # On Windows, it would let two servers share a port, each with a part of the requests.
    allow_reuse_address = os.name == "posix"
    # A browser loads many files at once, and the default of 5 would refuse some.
    request_queue_size = 128

    def handle_error(self, *_: Any) -> None:
        pass


class _Handler(SimpleHTTPRequestHandler):
    """Handler that serves files; it logs no requests, and does not list folders."""

    timeout = 30  # seconds that a client may stay silent

    # The machine's own table of types may lack these, and browsers refuse modules of another type.
    extensions_map = {  # noqa: RUF012
        ".html": "text/html; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".mjs": "text/javascript; charset=utf-8",
        ".json": "application/json",
        ".wasm": "application/wasm",
        "": "application/octet-stream",
    }

    def send_head(self) -> Any:
        # Another site can make its own name lead to this machine (DNS rebinding), but not change `Host`.
        if not all(map(is_loopback, self.headers.get_all("Host", []))):
            self.send_error(403, explain="This server answers to 127.0.0.1 and localhost only.")
            return None
        try:
            path, root = os.path.realpath(self.translate_path(self.path)), os.path.realpath(self.directory)
            # Real paths, so that a link in the folder does not lead out of it.
            if os.path.commonpath([path, root]) == root:
                return super().send_head()
        except ValueError:  # a NUL character, or one that no file name has
            pass
        self.send_error(404)
        return None

    def list_directory(self, path: Any) -> None:
        self.send_error(404)

    def end_headers(self) -> None:
        # Browsers ask whether a file was changed, guess no types of files, and give no file to other sites.
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def is_loopback(host: str) -> bool:
    """Return whether the value of the header `Host` is a name of this machine, with or without a port."""
    return re.fullmatch(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", host.strip().lower()) is not None


@contextlib.contextmanager
def serving(folder: Path, port: int) -> Iterator[ThreadingHTTPServer]:
    """Open a web server for a folder during a `with` block; it answers while its `serve_forever` runs.

    Port 0 is any free port. A port that cannot be used is an `InputError`.
    """
    try:
        # The address of this machine alone: 0.0.0.0 would open the folder to the network.
        server = _Server((_HOST, port), partial(_Handler, directory=str(folder)))
    except OSError as error:
        raise InputError(f"port {port}: cannot be used ({error.strerror}); name another") from None
    except OverflowError:
        raise InputError(f"port {port}: expected a number from 0 to 65535") from None
    with server:
        yield server
