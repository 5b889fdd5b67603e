"""The commands `simllm repair …`, which let models repair code and judge the result."""

from simllm.cli.repair import sandbox

HELP = "let models repair code, and judge the repaired programs by tests"
EXAMPLES = """example:
  simllm repair sandbox
"""
COMMANDS = (sandbox,)
