"""A web server for the files of one folder, which only this machine can reach."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from simllm.errors import InputError

_HOST = "127.0.0.1"


class _Handler(SimpleHTTPRequestHandler):
    """Handler of HTTP requests that serves files; it logs no requests, and does not list folders."""

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

    def list_directory(self, path: Any) -> None:
        """Answer a request for a folder with status 404, instead of a list of its files."""
        self.send_error(404)

    def end_headers(self) -> None:
        """Add two headers to an answer, and end its headers.

        `Cache-Control` makes browsers ask whether a file was changed. `X-Content-Type-Options` forbids
        browsers to guess the types of files.
        """
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Do nothing, so that requests are not logged."""


@contextlib.contextmanager
def serving(folder: Path, port: int) -> Iterator[ThreadingHTTPServer]:
    """Open a web server for the files of a folder during a `with` block.

    Args:
        folder: The folder.
        port: The port; 0 means any free port.

    Yields:
        The server. It answers requests while its method `serve_forever` runs.

    Raises:
        InputError: The port is used by another program, needs more rights than the user has, or is not a
            number from 0 to 65535.
    """
    try:
        server = ThreadingHTTPServer((_HOST, port), partial(_Handler, directory=str(folder)))
    except OSError as error:
        raise InputError(f"port {port}: cannot be used ({error.strerror}); name another") from None
    except OverflowError:
        raise InputError(f"port {port}: expected a number from 0 to 65535") from None
    with server:
        yield server
