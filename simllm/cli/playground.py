"""`simllm playground`: serve a page on this machine that scores texts in the browser."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import tempfile
import webbrowser
from dataclasses import dataclass
from pathlib import Path

from simllm.cli.shared_options import CommonOptions
from simllm.io import loopback_server

FORMATS: tuple[str, ...] = ()
OUTPUT = None
EXAMPLES = """example:
  simllm playground --open
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm playground`."""

    port: int = 8643
    open: bool = False
    model: str | None = None


def add_options(playground: argparse.ArgumentParser) -> None:
    """Add the options of `simllm playground` to its parser."""
    playground.add_argument("--port", type=int, help="default: %(default)s; 0 takes a free one")
    playground.add_argument("--open", action="store_true", help="open the page in a browser")


def run(options: Options) -> None:
    """Run `simllm playground`: serve the page until the user presses Ctrl+C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the temporary folder is removed
    with tempfile.TemporaryDirectory(prefix="simllm-playground-") as parent:
        folder = Path(parent) / "playground"
        # The port is taken before the model is loaded, so that a port in use is an error at once.
        with loopback_server.serving(folder, options.port) as server:
            from simllm.analysis.playground import write_playground
            from simllm.metric import SimLLM

            write_playground(SimLLM(options.model, long="whole"), folder)
            address = f"http://127.0.0.1:{server.server_port}/"
            # Printed when the socket listens, so that a program that reads the address can connect.
            print(address, flush=True)
            print("simllm: Ctrl+C ends the playground", file=sys.stderr)
            if options.open:
                webbrowser.open(address)
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()
