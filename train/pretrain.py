"""Pretrain an encoder: sources -> corpus -> vocabulary -> shards -> updates -> model folder.

    python -m train.pretrain configs/debug.yaml
    python -m train.pretrain configs/mini.yaml out=runs/mine 'corpus.sources=[my/*.jsonl.gz]'

Every step leaves its result in the run's folder and is not repeated; a run that was
stopped or killed goes on when the same command is given again.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import platform
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

import simllm
from simllm import checkpoint
from simllm.errors import InputError
from simllm.tokenizer import Tokenizer
from train import config as configs
from train import loop, shards, vocab
from train.batches import Batches
from train.config import PretrainConfig
from train.corpus import build
from train.objective import PermutedLanguageModel
from train.state import Progress


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.pretrain",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("config", type=Path, help="YAML file, such as configs/debug.yaml")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as model.hidden_size=128")
    options = parser.parse_args(arguments)
    try:
        pretrain(configs.load(options.config, options.overrides))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except loop.Interrupted as interrupted:
        print(interrupted, file=sys.stderr)
        return 130
    return 0


def pretrain(config: PretrainConfig) -> Path:
    """Do the whole run; returns the model folder with the best test perplexity."""
    out = Path(config.out)
    out.mkdir(parents=True, exist_ok=True)

    say("corpus")
    corpus = build.build(config.corpus, out / "corpus")
    say(f"  {corpus['counts']}")

    say("vocabulary")
    tokenizer = vocabulary(out / "corpus" / build.TRAIN, config.model.vocab_size, out / "vocabulary")

    say("shards")
    train_shard, test_shard = (
        shards.write(
            out / "corpus" / f"{part}.txt", tokenizer, config.model.max_length, out / "shards" / part
        )
        for part in ("train", "test")
    )
    say(f"  {len(train_shard.lengths):,} texts, {len(train_shard.ids):,} tokens")

    asked = {key: value for key, value in asdict(config).items() if key != "out"}
    run = hashlib.sha256(json.dumps([asked, corpus["sha256"], tokenizer.hash]).encode()).hexdigest()[:12]
    batches, test_batches = (
        Batches(shard, config.model.vocab_size, config.predict_probability, config.batch_tokens, config.seed)
        for shard in (train_shard, test_shard)
    )
    torch.manual_seed(config.seed)
    model = PermutedLanguageModel(config.model)
    log, best, revision = out / "log.jsonl", out / "model", git_revision()

    def record(line: dict[str, Any]) -> None:
        say("  ".join(f"{key} {value:,}" for key, value in line.items()))
        earlier = log.read_text().splitlines() if log.is_file() else []
        kept = [old for old in earlier if json.loads(old)["update"] < line["update"]]
        log.write_text("\n".join([*kept, json.dumps(line)]) + "\n")

    def keep_best(progress: Progress) -> None:
        facts = provenance(config, corpus, batches, progress, revision)
        info = checkpoint.ModelInfo(provenance=facts)
        checkpoint.save(best, model.encoder, tokenizer, info, card(facts))

    say("training")
    loop.train(config, model, batches, test_batches, run, record, keep_best)
    say(f"the best model is in {best}")
    return best


def vocabulary(texts: Path, size: int, folder: Path) -> Tokenizer:
    """Learn the vocabulary on the training texts, or load what was learned before."""
    file = folder / f"tokenizer-{size}.json"
    if not file.is_file():
        folder.mkdir(exist_ok=True)
        with texts.open(encoding="ascii") as lines:
            vocab.learn((line.rstrip("\n") for line in lines), size, folder / f"sentencepiece-{size}.model")
        partial = file.with_suffix(".partial")
        vocab.convert(folder / f"sentencepiece-{size}.model").save(str(partial))
        partial.rename(file)
    return Tokenizer.load(file)


def git_revision() -> str:
    """The revision of the checkout that runs, "-dirty" when files differ from it."""
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def provenance(
    config: PretrainConfig, corpus: dict[str, Any], batches: Batches, progress: Progress, revision: str
) -> dict[str, Any]:
    """Where a model comes from, as kept in its `simllm.json`."""
    return {
        "objective": "permuted language modelling",
        "config": asdict(config),
        "corpus_sha256": corpus["sha256"],
        "corpus_counts": corpus["counts"],
        "updates": progress.update,
        "tokens": progress.tokens,
        "epochs": round(progress.tokens / batches.tokens, 2),
        "seconds": round(progress.seconds),
        "test_perplexity": round(progress.best_perplexity, 3),
        "hardware": f"{torch.get_num_threads()} CPU threads ({platform.machine()})",
        "date": datetime.date.today().isoformat(),
        "git_revision": revision,
        "versions": {"simllm": simllm.__version__, "torch": torch.__version__},
    }


def card(facts: dict[str, Any]) -> str:
    """The model card of a pretrained model, from its provenance."""
    keys = ("objective", "updates", "tokens", "epochs", "seconds", "test_perplexity", "hardware", "date")
    rows = "\n".join(f"| {key.replace('_', ' ')} | {facts[key]} |" for key in (*keys, "git_revision"))
    return (
        "---\nlibrary_name: simllm\ntags: [sentence-similarity, code-summarization]\n---\n"
        "# A simllm encoder\n\nPretrained on code comments; scores pairs of code summaries.\n\n"
        f"| | |\n|---|---|\n{rows}\n"
    )


def say(line: str) -> None:
    """Print one line of progress."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
