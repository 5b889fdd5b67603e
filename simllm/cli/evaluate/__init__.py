"""The commands `simllm evaluate …`, which measure how good a metric is."""

from simllm.cli.evaluate import contrast, correlation, robustness, study

HELP = "evaluate metrics: agreement with human ratings, contrast, robustness"
EXAMPLES = """examples:
  simllm evaluate correlation --ratings haque2022.jsonl
  simllm evaluate study --ratings haque2022.jsonl shen2021.jsonl --out report
  simllm evaluate contrast --metrics simllm,rouge-l,word-vectors=corpus.jsonl
"""
COMMANDS = (correlation, study, contrast, robustness)
