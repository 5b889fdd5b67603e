"""A llama.cpp server in a process of its own, which ends with the process that started it.

The file is run by its path, with no other module of simllm. Standard input has one JSON line with the
settings, and stays open as long as the server is needed. Standard output gets the address.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve until the standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the parent, which closes the input
    # While it loads a model, llama.cpp keeps Python from reading the input: the kernel ends the process then.
    with contextlib.suppress(OSError, AttributeError, TypeError):  # only Linux has it
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    settings = json.loads(sys.stdin.readline())
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = settings["file"]
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    parameters.api_keys = [settings["key"]]
    parameters.n_parallel = settings["parallel"]
    # llama.cpp divides the context among the requests that it works on at the same time.
    parameters.n_ctx = settings["context"] * settings["parallel"]
    parameters.offline = True
    parameters.ui = parameters.endpoint_slots = False
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)  # without waiting for replies that nobody reads any more


if __name__ == "__main__":
    main()
