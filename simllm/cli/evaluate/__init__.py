"""The command `simllm evaluate`: does a metric agree with people, and does it go by meaning?"""

from __future__ import annotations

import argparse

from simllm.cli.evaluate import contrast, correlation, robustness, study
from simllm.cli.evaluate.options import Command

EXAMPLES = """examples:
  simllm evaluate --ratings haque2022.jsonl
  simllm evaluate --ratings haque2022.jsonl --metrics simllm,bleu --model my/model -f json
  simllm evaluate study --ratings haque2022.jsonl shen2021.jsonl --out report
  simllm evaluate contrast --metrics simllm,rouge-l,word-vectors=corpus.jsonl
"""


def add(evaluate: argparse.ArgumentParser, command: Command) -> None:
    """Give `simllm evaluate` its options and its own commands; `command` adds one."""
    correlation.add(evaluate)
    commands = evaluate.add_subparsers(title="commands", metavar="COMMAND")
    for made in (study, contrast, robustness):
        made.add(commands, command)
    shared = {action.dest for action in evaluate._actions} - {"help"}
    for nested in commands.choices.values():  # else its defaults take the place of what was given before it
        for action in nested._actions:
            if action.dest in shared and not action.required:
                action.default = argparse.SUPPRESS
