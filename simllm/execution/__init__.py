"""Compile untrusted programs, run them in a sandbox under limits, and judge them by tests.

The *caller* asks a *supervisor*, a small process of its own, to run a command. The supervisor starts the
command in bubblewrap, watches its limits, and answers with an *outcome*. A *judge* compiles a program, runs
it on tests, and gives a *verdict* of two letters.
"""

from simllm.execution.limits import Limits
from simllm.execution.messages import Outcome, SandboxError
from simllm.execution.sandbox import Sandbox

__all__ = ["Limits", "Outcome", "Sandbox", "SandboxError"]
