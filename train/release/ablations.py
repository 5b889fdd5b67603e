"""Ablations: short runs that show what each ingredient of the recipe contributes.

    python -m train.release.ablations configs/ablations.yaml -o checkpoints/ablations.json

The output is written after each variant. Rerun the same command to resume: variants that the output
has from the same commands are neither trained nor measured again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import files, folders
from train.release.measure import MeasureConfig, measure
from train.runtime import config as configs
from train.runtime import signals
from train.runtime.config import ContrastiveConfig, PretrainConfig, TrainingConfig
from train.runtime.tool_command import add_overwrite_option, check_output, run_tool

_CONFIGS: dict[str, type[TrainingConfig]] = {
    "train.pretrain": PretrainConfig,
    "train.contrastive": ContrastiveConfig,
}


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
        names = [variant.folder for variant in self.variants]
        if twice := {name for name in names if names.count(name) > 1}:
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
    add_overwrite_option(parser)
    options = parser.parse_args()
    return run_tool(lambda: _ablate(**vars(options)))


def _ablate(config: Path, output: Path, overwrite: bool) -> None:
    loaded = configs.load(AblationsConfig, config, [])
    check_output(output, True, [config, Path(loaded.recipe), Path(loaded.measure)])
    with files.locked(output):
        ablate(loaded, output, overwrite)


def ablate(config: AblationsConfig, output: Path, overwrite: bool = False) -> None:
    """Train and measure each variant that `output` does not have yet.

    Raises InputError if a configuration is wrong, if `output` holds anything that would be lost and
    `overwrite` is false, or if a training fails; Interrupted if a signal stops a training.
    """
    sets = replace(configs.load(MeasureConfig, Path(config.measure), []), baselines=())
    outs = {variant.name: Path(config.out) / variant.folder for variant in config.variants}
    for out in outs.values():
        folders.check(out)
    runs = {variant.name: commands(config, variant, outs[variant.name]) for variant in config.variants}
    asked = {name: {"commands": run, "configuration": _digest(name, run, sets)} for name, run in runs.items()}
    before = _measured(output, overwrite)
    rows = {name: row for name, row in before.items() if name in asked and asked[name].items() <= row.items()}
    if (lost := sorted(before.keys() - rows.keys())) and not overwrite:
        raise InputError(
            f"{output}: has {', '.join(lost)} from another configuration; --overwrite drops them"
        )
    for name in runs:
        if name in rows:
            continue
        for command in runs[name]:
            status = signals.run_forwarding_signals([sys.executable, "-m", *command])
            if status in (signals.STOPPED_BY_SIGNAL, signals.STOPPED_BY_KEYBOARD):
                raise signals.Interrupted("stopped; rerun the same command to resume", status)
            if status:
                raise InputError(f"{name}: training ended with exit status {status}")
        rows[name] = {"variant": name, **asked[name], **measure(outs[name] / "model", sets)}
        ordered = [rows[other] for other in runs if other in rows]
        files.write(output, json.dumps(ordered, indent=1) + "\n")


def _digest(name: str, runs: list[list[str]], sets: MeasureConfig) -> str:
    """Return a hash of what a variant's training runs and its figures are configured with."""
    try:
        loaded = [configs.load(_CONFIGS[module], Path(file), keys) for module, file, *keys in runs]
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    values = [*map(asdict, loaded), asdict(sets)]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:12]


def _measured(output: Path, overwrite: bool) -> dict[str, dict[str, Any]]:
    """Return the rows of an earlier start, by variant.

    There are none in a missing or empty file, nor, with `overwrite`, in one that holds something
    else; without `overwrite`, such a file raises InputError.
    """
    try:
        text = output.read_text(encoding="utf-8")
        rows = json.loads(text) if text else []
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"{output}: cannot be read ({error.strerror})") from None
    except ValueError:
        rows = None
    if isinstance(rows, list) and all(_is_row(row) for row in rows):
        return {row["variant"]: row for row in rows}
    if overwrite:
        return {}
    raise InputError(f"{output}: holds something else than ablations; choose another file")


def _is_row(row: Any) -> bool:
    """Whether `ablate` can have written this row."""
    return (
        isinstance(row, dict)
        and {"variant", "commands", "signature", "spearman", "contrast"} <= row.keys()
        and isinstance(row["variant"], str)
        and isinstance(row["commands"], list)
    )


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
