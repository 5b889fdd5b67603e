"""The commands `simllm mine …`, which build data sets from git repositories."""

EXAMPLES = """example:
  simllm mine satd my/repositories -o items.jsonl
"""
