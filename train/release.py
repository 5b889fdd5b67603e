"""Make the default model: half-precision weights, training logs, and a card with measured figures.

    python -m train.release runs/mini runs/contrastive --out OUT --notes FILE --ratings FILE …

The runs are given in the order in which they trained; the last one's model is released.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch

from simllm import checkpoint
from simllm.errors import InputError
from simllm.evaluation.study import study
from simllm.files import lines, replace_folder


def main() -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.release",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+", type=Path, help="folders of training runs")
    parser.add_argument("--out", required=True, type=Path, help="the model folder to make")
    parser.add_argument("--notes", required=True, type=Path, help="Markdown that the card ends with")
    parser.add_argument("--ratings", nargs="+", required=True, type=Path, help="rated files to report on")
    options = parser.parse_args()
    try:
        release(options.runs, options.out, options.notes, options.ratings)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def release(runs: list[Path], out: Path, notes: Path, rated: list[Path]) -> None:
    """Write the model folder `out`; it is evaluated as it will be loaded, and put in place last."""
    trained = checkpoint.load(runs[-1] / "model")
    candidate = out.with_name(out.name + ".candidate")
    checkpoint.save(candidate, trained.encoder, trained.tokenizer, trained.info, "", torch.float16)
    for number, folder in enumerate(runs, 1):
        shutil.copy(folder / "log.jsonl", candidate / f"log-{number}-{folder.name}.jsonl")
    text = "\n".join(line for _, line in lines(notes))
    (candidate / "README.md").write_text(card(runs, candidate, rated) + "\n" + text + "\n")
    replace_folder(candidate, out)


def card(runs: list[Path], model: Path, rated: list[Path]) -> str:
    """The model card: what it was trained on and how, and what was measured."""
    loaded = checkpoint.load(model)
    parameters = sum(p.numel() for p in loaded.encoder.parameters())
    config = loaded.encoder.config
    parts = [
        "---\nlibrary_name: simllm\ntags: [sentence-similarity, code-summarization]\n---",
        "# The default model of simllm",
        f"{config.num_hidden_layers} layers of {config.hidden_size}, {config.vocab_size:,} tokens, "
        f"{parameters / 1e6:.1f}M parameters, stored as float16; longest input {config.max_length} tokens. "
        f"Model hash {loaded.hash}, tokenizer hash {loaded.tokenizer.hash}.",
        "## Training",
    ]
    for number, folder in enumerate(runs, 1):
        stage = checkpoint.load(folder / "model").info.provenance
        parts += [f"### {number}. {stage['objective']}", _table(["", ""], _facts(stage))]
    parts += ["The logs are beside this file.", "## Agreement with people", _agreement(model, rated)]
    return "\n\n".join(parts) + "\n"


def _facts(stage: dict[str, Any]) -> list[list[str]]:
    """What a reader of the card wants to know of one stage of training."""
    names = ("updates", "tokens", "epochs", "seconds", "test_perplexity", "dev_spearman", "hardware", "date")
    rows = [[name.replace("_", " "), f"{stage[name]}"] for name in (*names, "git_revision") if name in stage]
    for name in ("corpus_counts", "pairs"):
        counts = stage.get(name, {})
        rows += [[f"{name.split('_')[0]}: {Path(key).name}", f"{count:,}"] for key, count in counts.items()]
    return [*rows, ["configuration", f"`{json.dumps(stage['config'])}`"]]


def _agreement(model: Path, rated: list[Path]) -> str:
    rows = []
    for file in rated:
        for row in study(file, model=model).rows:
            interval = f"{row.low:.3f} to {row.high:.3f}"
            rows.append([file.stem, str(row.n), row.metric, f"{row.spearman:.4f}", interval])
    return _table(["ratings", "pairs", "metric", "Spearman", "95% interval"], rows)


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines_ = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines_)


if __name__ == "__main__":
    sys.exit(main())
