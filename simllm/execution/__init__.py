"""Untrusted code: compiled and run in a sandbox under limits, and judged by tests."""

from simllm.execution.run_messages import Limits, Outcome, SandboxError
from simllm.execution.sandbox import Sandbox

__all__ = ["Limits", "Outcome", "Sandbox", "SandboxError"]
