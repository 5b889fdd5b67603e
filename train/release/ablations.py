"""Ablations: short training runs that show what each part of the training recipe contributes.

    python -m train.release.ablations configs/ablations.yaml -o checkpoints/ablations.json

Each run trains a variant of the recipe, in which some settings are changed. The output is written after each
variant. Rerun the same command to resume. A variant is skipped if the output already has a result of this
variant with the same settings.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.output_file import locked
from simllm.io.output_folder import OutputFolder
from train.contrastive.config import ContrastiveConfig
from train.distill.config import DistillConfig
from train.pretrain.config import PretrainConfig
from train.release.measure import MeasureConfig, check_inputs, measure
from train.runtime import config as training_config
from train.runtime import signals
from train.runtime.command import make_parser, run_command
from train.runtime.config import TrainingConfig

_FIRST_STAGES: dict[str, type[TrainingConfig]] = {
    "train.pretrain": PretrainConfig,
    "train.distill": DistillConfig,
}
_CONFIGS: dict[str, type[TrainingConfig]] = {**_FIRST_STAGES, "train.contrastive": ContrastiveConfig}


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A variant of the training recipe."""

    name: str
    overrides: tuple[str, ...] = ()  # overrides of the contrastive training
    # overrides of the variant's own first stage; None: the variant starts from the recipe's initial model
    first_stage: tuple[str, ...] | None = None

    @property
    def folder(self) -> str:
        """The name of the run folder, such as `no-teacher` for the variant `no teacher`."""
        return re.sub(r"\W+", "-", self.name)


@dataclass(frozen=True, kw_only=True)
class FirstStage:
    """A short first stage, for the variants that do not start from the recipe's initial model."""

    training: str  # the Python module to run: train.pretrain or train.distill
    recipe: str  # a configuration file of this training
    overrides: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.training not in _FIRST_STAGES:
            raise InputError(f"training must be one of {', '.join(_FIRST_STAGES)}, not {self.training!r}")


@dataclass(frozen=True, kw_only=True)
class AblationsConfig:
    """The training recipe, its variants, and the data sets to measure them on."""

    recipe: str  # a configuration file of contrastive training
    measure: str  # a configuration file with a `MeasureConfig`
    out: str  # folder of the runs
    overrides: tuple[str, ...]  # overrides of the recipe for all variants
    first_stage: FirstStage
    variants: tuple[Variant, ...]

    def __post_init__(self) -> None:
        names = [variant.folder for variant in self.variants]
        if repeated := {name for name in names if names.count(name) > 1}:
            raise InputError(f"variants: more than one is named {', '.join(sorted(repeated))}")


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.release.ablations", __doc__)
    parser.add_argument("config", type=Path, help="YAML file, such as configs/ablations.yaml")
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSON to write")
    return run_command(parser, _ablate, overwrite=True)


def _ablate(config: Path, output: Path, overwrite: bool) -> None:
    loaded = training_config.load(AblationsConfig, config, [])
    output_file.check_output(output, True, [config, Path(loaded.recipe), Path(loaded.measure)])
    with locked(output):
        run_ablations(loaded, output, overwrite)


def run_ablations(config: AblationsConfig, output: Path, overwrite: bool = False) -> None:
    """Train and measure all variants, and write the results to a JSON file after each variant.

    A variant is skipped if the file has its result with the same settings. `overwrite` allows results of
    another configuration to be dropped. Raises Stopped if a signal stopped a training.
    """
    # Baselines are the same for all variants, and need not be measured again.
    sets = replace(training_config.load(MeasureConfig, Path(config.measure), []), baselines=())
    check_inputs(sets)
    outs = {variant.name: Path(config.out) / variant.folder for variant in config.variants}
    # Before the first training, so that a folder of other content stops the command at once.
    for out in outs.values():
        OutputFolder(out).check()
    runs = {
        variant.name: training_commands(config, variant, outs[variant.name]) for variant in config.variants
    }
    first_stages = {_made_model(run[0]): run[0] for run in runs.values() if len(run) == 2}
    settings = {
        name: {"commands": run, "configuration": _digest(name, run, first_stages, sets)}
        for name, run in runs.items()
    }
    before = _finished_rows(output, overwrite)
    rows = {
        name: row
        for name, row in before.items()
        if name in settings and settings[name].items() <= row.items()
    }
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
                raise signals.Stopped("stopped; rerun the same command to resume", status)
            if status:
                raise InputError(f"{name}: training ended with exit status {status}")
        rows[name] = {"variant": name, **settings[name], **measure(outs[name] / "model", sets)}
        ordered = [rows[other] for other in runs if other in rows]
        output_file.write(output, json.dumps(ordered, indent=1) + "\n")


def _made_model(command: list[str]) -> str:
    """Return the model folder that a command from `training_commands` makes."""
    return f"{command[-1].removeprefix('out=')}/model"


def _digest(name: str, runs: list[list[str]], first_stages: dict[str, list[str]], sets: MeasureConfig) -> str:
    """Hash the settings with which a variant is trained and measured; another hash outdates a result."""
    try:
        loaded = [_load(command) for command in runs]
        last = loaded[-1]
        if len(runs) == 1 and isinstance(last, ContrastiveConfig) and last.model in first_stages:
            # The variant starts from the model that another variant's first stage makes: its settings count,
            # too.
            loaded.insert(0, _load(first_stages[last.model]))
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    values = [*map(asdict, loaded), asdict(sets)]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:12]


def _load(command: list[str]) -> TrainingConfig:
    module, file, *overrides = command
    return training_config.load(_CONFIGS[module], Path(file), overrides)


def _finished_rows(output: Path, overwrite: bool) -> dict[str, dict[str, Any]]:
    """Read the results of earlier calls, by variant; `overwrite` treats a file of something else as empty."""
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
    return (
        isinstance(row, dict)
        and {"variant", "commands", "signature", "spearman", "contrast"} <= row.keys()
        and isinstance(row["variant"], str)
        and isinstance(row["commands"], list)
    )


def training_commands(config: AblationsConfig, variant: Variant, out: Path) -> list[list[str]]:
    """Return the one or two commands that train a variant: for each, the module to run and its arguments.

    `out` is the run folder of the contrastive training; that of the first stage ends in `-first-stage`.
    """
    runs, start = [], []
    if variant.first_stage is not None:
        stage = config.first_stage
        folder = out.with_name(out.name + "-first-stage")
        runs.append([stage.training, stage.recipe, *stage.overrides, *variant.first_stage, f"out={folder}"])
        start = [f"model={folder / 'model'}"]
    overrides = [*config.overrides, *variant.overrides, *start, f"out={out}"]
    return [*runs, ["train.contrastive", config.recipe, *overrides]]


if __name__ == "__main__":
    sys.exit(main())
