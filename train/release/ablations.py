"""What each ingredient of the recipe gives: short runs, each without one of them.

    python -m train.release.ablations configs/ablations.yaml -o checkpoints/ablations.json

Runs that are finished are not repeated, nor measured again where the output has them from the same
commands; it is written anew after each.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import files
from train.release.measure import MeasureConfig, measure
from train.runtime import config as configs


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One run: what differs from the recipe."""

    name: str
    overrides: tuple[str, ...] = ()
    pretraining: tuple[str, ...] | None = None  # overrides of a short first stage of its own, to start from

    @property
    def folder(self) -> str:
        """The name of its run's folder."""
        return re.sub(r"\W+", "-", self.name)


@dataclass(frozen=True, kw_only=True)
class FirstStage:
    """The first stage of the variants that have one of their own."""

    recipe: str  # a configuration of pretraining
    overrides: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AblationsConfig:
    """The runs, and what all of them share."""

    recipe: str  # a configuration of the contrastive stage
    measure: str  # a configuration of the figures
    out: str  # folder of the runs
    overrides: tuple[str, ...]  # of the recipe, in every run
    first_stage: FirstStage
    variants: tuple[Variant, ...]

    def __post_init__(self) -> None:
        folders = [variant.folder for variant in self.variants]
        if twice := {folder for folder in folders if folders.count(folder) > 1}:
            raise InputError(f"variants: more than one is named {', '.join(sorted(twice))}")


def main() -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.release.ablations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("config", type=Path, help="YAML file, such as configs/ablations.yaml")
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSON to write")
    options = parser.parse_args()
    try:
        ablate(configs.load(AblationsConfig, options.config, []), options.output)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def ablate(config: AblationsConfig, output: Path) -> None:
    """Train and measure each variant."""
    sets = replace(configs.load(MeasureConfig, Path(config.measure), []), baselines=())
    before = _measured(output) if output.exists() else {}
    folders = {variant.name: Path(config.out) / variant.folder for variant in config.variants}
    runs = {variant.name: commands(config, variant, folders[variant.name]) for variant in config.variants}
    rows = {name: before[name] for name in runs if before.get(name, {}).get("commands") == runs[name]}
    for name in runs:
        if name in rows:
            continue
        for command in runs[name]:
            if status := subprocess.run([sys.executable, "-m", *command], check=False).returncode:
                raise InputError(f"{name}: training ended with exit status {status}")
        rows[name] = {"variant": name, "commands": runs[name], **measure(folders[name] / "model", sets)}
        ordered = [rows[other] for other in runs if other in rows]
        files.write(output, json.dumps(ordered, indent=1) + "\n")


def _measured(output: Path) -> dict[str, dict[str, Any]]:
    """The rows of an earlier start, by variant."""
    try:
        return {row["variant"]: row for row in json.loads(output.read_text(encoding="utf-8"))}
    except (OSError, ValueError, TypeError, KeyError):
        raise InputError(f"{output}: holds something else than ablations; choose another file") from None


def commands(config: AblationsConfig, variant: Variant, out: Path) -> list[list[str]]:
    """The training runs of a variant, as one would type them; the last one's folder is `out`."""
    runs, start = [], []
    if variant.pretraining is not None:
        first = config.first_stage
        pretrained = out.with_name(out.name + "-pretrained")
        runs.append(
            ["train.pretrain", first.recipe, *first.overrides, *variant.pretraining, f"out={pretrained}"]
        )
        start = [f"model={pretrained / 'model'}"]
    overrides = [*config.overrides, *variant.overrides, *start, f"out={out}"]
    return [*runs, ["train.contrastive", config.recipe, *overrides]]


if __name__ == "__main__":
    sys.exit(main())
