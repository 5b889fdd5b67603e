"""The commands `simllm evaluate …`, which evaluate metrics, classifiers, and tools that edit or read code."""

from simllm.cli.evaluate import classifiers, contrast, correlation, edits, metamorphic, robustness, study

HELP = "evaluate metrics (agreement with people, contrast, robustness), code edits, classifiers, rewrites"
EXAMPLES = """examples:
  simllm evaluate correlation --ratings haque2022.jsonl
  simllm evaluate study --ratings haque2022.jsonl shen2021.jsonl --out report
  simllm evaluate contrast --metrics simllm,rouge-l,word-vectors=corpus.jsonl
"""
COMMANDS = (correlation, study, contrast, robustness, edits, classifiers, metamorphic)
