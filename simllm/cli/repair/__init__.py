"""The commands `simllm repair …`, which let language models repair code, and test the repaired code."""

EXAMPLES = """examples:
  simllm repair sandbox
  simllm repair run items.jsonl --base-url http://localhost:8000/v1 --model M --strategy cref -o runs/cref
  simllm repair report runs/cref -o report
"""
