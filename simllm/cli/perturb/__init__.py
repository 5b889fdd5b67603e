"""The commands `simllm perturb …`, which rewrite code by rules that keep its behaviour."""

EXAMPLES = """example:
  simllm perturb code src/ --rules for-to-while,reverse-if -o out/
"""
