"""Train the code reader, which scores a summary against the code that it describes.

    python -m train.code_reader configs/code.yaml

The encoder of summaries stays as it is. To resume a run that was stopped or killed, rerun the same command;
the number of processes may change.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from simllm.io.output_file import sha256_of
from simllm.io.reading import read_json
from simllm.model import code_model
from simllm.model.saved_model import SINGLE_FILE
from simllm.perturb.summaries import lexicon
from train.code_reader.measure import make_card
from train.code_reader.task import CodeReaderConfig, CodeReaderTask
from train.runtime import loop, training_run
from train.runtime.checkpoint import Progress
from train.runtime.config import MODEL
from train.runtime.distributed import World
from train.runtime.log import open_log, print_progress
from train.runtime.provenance import git_revision, training_provenance
from train.runtime.signals import StopRequest
from train.runtime.training_run import run_training
from train.tokens.shards import digest


def train(config: CodeReaderConfig, world: World, stop: StopRequest) -> Path:
    """Train a code reader, or resume the run, and return the folder of the one that was best on dev data."""
    out, revision = Path(config.out), git_revision()
    log = world.first_then_others(lambda: open_log(config, world))
    task = world.in_all_processes(lambda: CodeReaderTask(config, world))
    if world.is_first:
        print_progress(f"  {len(task.functions):,} functions from {config.pairs}")
        print_progress("training")

    before: dict[str, object] = {}
    if config.start:
        trained = read_json(Path(config.start) / code_model.INFO).get("provenance", {})
        before = {
            "updates_before": trained.get("updates_before", 0) + trained.get("updates", 0),
            "start": sha256_of(Path(config.start) / SINGLE_FILE)[:12],
        }

    def save_model(folder: Path, progress: Progress, criterion: float) -> None:
        facts = {
            "objective": "code reader (InfoNCE, sigmoid, variants, head)",
            "functions": len(task.functions),
            **before,
            **training_provenance(config, progress, world, revision),
            "dev_criterion": round(-criterion, 4),
        }
        info = replace(task.code.info, fits=task.calibrated, provenance=facts)
        code_model.save(folder, task.code, info, make_card(facts))

    words = digest(*sorted(lexicon.FOLDER.iterdir()))  # changes of meaning come from word lists
    inputs = [task.summaries.hash, task.summaries.tokenizer.hash, sha256_of(Path(config.pairs)), words]
    if config.start:
        inputs.append(sha256_of(Path(config.start) / SINGLE_FILE))
    loop.train(config, task, world, stop, training_run.identity(config, *inputs), log, save_model)
    return out / MODEL


if __name__ == "__main__":
    sys.exit(run_training(CodeReaderConfig, train, "train.code_reader", __doc__))
