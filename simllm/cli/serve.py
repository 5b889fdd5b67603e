"""`simllm serve`: score over HTTP, for programs in any language and for reinforcement learning."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from simllm.cli.shared_options import CommonOptions, take
from simllm.errors import InputError
from simllm.io import packages, reading

if TYPE_CHECKING:
    from simllm.metric import SimLLM

FORMATS: tuple[str, ...] = ()
OUTPUT = None
EXAMPLES = """examples:
  simllm serve
  simllm serve --port 0 --max-pairs 256 --timeout 20
  simllm serve --host 0.0.0.0 --token-file token.txt
"""
_TOKEN = "SIMLLM_TOKEN"  # the environment variable; other users of the machine can read command lines
_SHORTEST_TOKEN = 16  # characters


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm serve`."""

    host: str = "127.0.0.1"
    port: int = 8644
    token_file: Path | None = None
    max_body: int = 4 << 20
    max_pairs: int = 1024
    max_waiting: int = 16_384
    timeout: float = 60
    # The learned metric.
    model: str | None = None
    mode: str = "exact"
    device: str | None = None
    on_long: str = "truncate"
    long: str | None = None
    prior: float = 0.5


def add_options(serve: argparse.ArgumentParser) -> None:
    """Add the options of `simllm serve` to its parser."""
    serve.add_argument(
        "--host", metavar="ADDRESS",
        help="where to listen; default: %(default)s, which only this machine can reach; others need a token",
    )  # fmt: skip
    serve.add_argument("--port", type=int, help="default: %(default)s; 0 takes a free one")
    serve.add_argument(
        "--token-file", type=Path, metavar="FILE",
        help=f"a secret that requests must have; default: the environment variable {_TOKEN}, or none",
    )  # fmt: skip
    serve.add_argument("--max-body", type=int, metavar="BYTES", help="largest request; default: %(default)s")
    serve.add_argument("--max-pairs", type=int, metavar="N", help="in a request; default: %(default)s")
    serve.add_argument(
        "--max-waiting", type=int, metavar="N",
        help="pairs that wait in all requests; more are refused (503); default: %(default)s",
    )  # fmt: skip
    serve.add_argument("--timeout", type=float, metavar="SECONDS", help="for a request; default: %(default)s")
    serve.add_argument("--mode", choices=("exact", "fast"), help="the precision, as in simllm score")
    serve.add_argument("--device", metavar="NAME", help="cpu, cuda or mps, as in simllm score")
    serve.add_argument("--on-long", choices=("truncate", "window", "error"), help="as in simllm score")
    serve.add_argument("--long", choices=("sentences", "whole"), help="as in simllm score")
    serve.add_argument("--prior", type=float, metavar="P", help="as in simllm score; default: %(default)s")


def run(options: Options) -> None:
    """Run `simllm serve`: print the address, and answer requests until a signal comes."""
    token = _read_token(options.token_file)
    with packages.require_serve_extra():
        from simllm.analysis.server import api, batches, transport
    limits = take(batches.Limits, vars(options))
    # The port is taken before the model is loaded, so that a port in use is an error at once.
    listener, address = transport.listen(options.host, options.port, token is not None)
    with listener:
        # Printed when the socket listens, so that a program that reads the address can connect.
        print(address, flush=True)

        def load() -> SimLLM:
            from simllm.metric import SimLLM

            return SimLLM(
                options.model,
                mode=options.mode,
                device=options.device,
                on_long=options.on_long,
                long=options.long,
                prior=options.prior,
            )

        def say(message: str) -> None:
            if not options.quiet:
                print(f"simllm: {message}", file=sys.stderr, flush=True)

        batcher = batches.Batcher(load, limits)
        transport.serve(api.Service(batcher, token, options.host).app, batcher, listener, say)


def _read_token(file: Path | None) -> str | None:
    """Read the token from a file, or else from the environment; InputError for one that is easy to guess."""
    if file is not None:
        where, token = str(file), reading.whole_text(file).strip()
    elif (value := os.environ.get(_TOKEN)) is not None:
        where, token = f"the environment variable {_TOKEN}", value.strip()
    else:
        return None
    # Headers of HTTP are ASCII.
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(
            f"{where}: expected a token of {_SHORTEST_TOKEN} or more ASCII characters without spaces"
        )
    return token
