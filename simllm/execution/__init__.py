"""Tools that compile untrusted programs, run them in a sandbox under limits, and judge them by tests."""

from simllm.execution.resource_limits import Limits
from simllm.execution.sandbox import Sandbox
from simllm.execution.sandbox_outcome import Outcome, SandboxError

__all__ = ["Limits", "Outcome", "Sandbox", "SandboxError"]
