"""The commands `simllm evaluate …`, which evaluate metrics, classifiers, and tools that edit or read code."""

EXAMPLES = """examples:
  simllm evaluate correlation --ratings haque2022.jsonl
  simllm evaluate study --ratings haque2022.jsonl shen2021.jsonl --out report
  simllm evaluate contrast --metrics simllm,rouge-l,word-vectors=corpus.jsonl
"""
