"""The commands `simllm evaluate …`, which measure how good a metric is, or a system that edits code."""

from simllm.cli.evaluate import contrast, correlation, edits, robustness, study

HELP = "evaluate metrics (agreement with people, contrast, robustness) and code edits"
EXAMPLES = """examples:
  simllm evaluate correlation --ratings haque2022.jsonl
  simllm evaluate study --ratings haque2022.jsonl shen2021.jsonl --out report
  simllm evaluate contrast --metrics simllm,rouge-l,word-vectors=corpus.jsonl
"""
COMMANDS = (correlation, study, contrast, robustness, edits)
