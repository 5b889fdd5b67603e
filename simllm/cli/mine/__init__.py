"""The commands `simllm mine …`, which build data sets from git repositories."""

from simllm.cli.mine import satd

HELP = "build data sets from git histories: repayments of technical debt"
EXAMPLES = """example:
  simllm mine satd my/repositories -o items.jsonl
"""
COMMANDS = (satd,)
