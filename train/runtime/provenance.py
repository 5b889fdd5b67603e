"""The provenance of a trained model: how, when and on what machine it was trained."""

from __future__ import annotations

import datetime
import platform
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

import simllm
from train.runtime.checkpoint import Progress
from train.runtime.config import TrainingConfig, hide_data_root
from train.runtime.distributed import World


def git_revision() -> str:
    """Return the git revision of the running code, with "-dirty" after uncommitted changes, or "unknown"."""
    # The folder of this file, because the command may run elsewhere.
    describe = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(
            describe, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:  # git is not installed
        return "unknown"
    return done.stdout.strip() or "unknown"


def training_provenance(
    config: TrainingConfig, progress: Progress, world: World, revision: str
) -> dict[str, Any]:
    """Describe a run in JSON values, for the `simllm.json` of the trained model.

    `revision` is the git revision at the start of the run, since the checkout may change meanwhile.
    """
    return {
        "config": hide_data_root(asdict(config)),
        "updates": progress.update,
        "tokens": progress.tokens,
        "seconds": round(progress.seconds),
        "hardware": describe_hardware(world),
        "date": datetime.date.today().isoformat(),
        "git_revision": revision,
        "versions": {"simllm": simllm.__version__, "torch": torch.__version__},
    }


def describe_hardware(world: World) -> str:
    """Describe the devices of a run, such as "2 x NVIDIA H200"."""
    if world.device.type == "cuda":
        return f"{world.size} x {torch.cuda.get_device_name(world.device)}"
    return f"{world.size} x {torch.get_num_threads()} CPU threads ({platform.machine()})"


def training_card(stage: str, facts: dict[str, Any]) -> str:
    """Format the model card in Markdown; `stage` is a sentence without the full stop.

    `facts` describe the run. Those that are dictionaries are left out.
    """
    rows = "\n".join(
        f"| {key.replace('_', ' ')} | {value} |"
        for key, value in facts.items()
        if not isinstance(value, dict)
    )
    return (
        "---\nlibrary_name: simllm\ntags: [sentence-similarity, code-summarization]\n---\n"
        f"# A simllm encoder\n\n{stage}. Scores pairs of code summaries.\n\n"
        f"| | |\n|---|---|\n{rows}\n"
    )
