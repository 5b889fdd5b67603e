"""Tools that compile untrusted programs, run them in a sandbox under limits, and judge them by tests."""

from simllm.execution.limits import Limits
from simllm.execution.messages import Outcome, SandboxError
from simllm.execution.sandbox import Sandbox

__all__ = ["Limits", "Outcome", "Sandbox", "SandboxError"]
