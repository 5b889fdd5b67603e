"""The commands `simllm perturb …`, which rewrite code by rules that keep its behaviour."""

from simllm.cli.perturb import code

HELP = "rewrite code so that it behaves the same"
EXAMPLES = """example:
  simllm perturb code src/ --rules for-to-while,reverse-if -o out/
"""
COMMANDS = (code,)
