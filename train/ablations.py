"""What each ingredient of the contrastive stage gives: short runs, each without one of them.

    python -m train.ablations configs/ablations.yaml -o checkpoints/ablations.json

Runs that are finished are not repeated; the result is written anew after each.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simllm import files
from simllm.errors import InputError
from train import config as configs
from train.measure import MeasureConfig, measure


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One run: what differs from the recipe."""

    name: str
    overrides: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AblationsConfig:
    """The runs, and what all of them share."""

    recipe: str  # a configuration of the contrastive stage
    measure: str  # a configuration of the figures
    out: str  # folder of the runs
    overrides: tuple[str, ...]  # of the recipe, in every run
    variants: tuple[Variant, ...]


def main() -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.ablations",
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
    sets = configs.load(MeasureConfig, Path(config.measure), [])
    rows: list[dict[str, Any]] = []
    for variant in config.variants:
        out = Path(config.out) / variant.name.replace(" ", "-")
        overrides = [*config.overrides, *variant.overrides, f"out={out}"]
        done = subprocess.run(
            [sys.executable, "-m", "train.contrastive", config.recipe, *overrides], check=False
        )
        if done.returncode:
            raise InputError(f"{variant.name}: training ended with exit status {done.returncode}")
        rows.append({"variant": variant.name, "overrides": overrides, **measure(out / "model", sets)})
        files.write(output, json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
