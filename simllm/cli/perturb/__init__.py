"""The commands `simllm perturb …`, which rewrite code and attack texts by rules."""

EXAMPLES = """examples:
  simllm perturb code src/ --rules for-to-while,reverse-if -o out/
  simllm perturb text items.jsonl --rules charswap,synonym -o attacked.jsonl
"""
