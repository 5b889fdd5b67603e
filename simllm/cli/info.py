"""`simllm info`: describe a model folder and how its model was trained."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simllm.cli.shared_options import CommonOptions
from simllm.io import output_file, tables
from simllm.io.tables import FORMATS as FORMATS

if TYPE_CHECKING:
    from simllm.metric import SimLLM

EXAMPLES = """examples:
  simllm info
  simllm info --model my/model -f json
"""
_PROVENANCE = ("objective", "updates", "date", "hardware", "git_revision", "dev_spearman")


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm info`."""

    model: str | None = None


def run(options: Options) -> None:
    """Run `simllm info`: write a table of facts about a model."""
    output_file.check_output(options.output, options.overwrite)
    from simllm.metric import SimLLM
    from simllm.model.saved_model import default_model

    metric = SimLLM(options.model)
    config, stored = metric.model.config, metric.model.info
    facts = {
        "folder": str(options.model or default_model()),
        "parameters": sum(weight.size for weight in metric.model.weights.values()),
        "layers": config.num_hidden_layers,
        "hidden size": config.hidden_size,
        "vocabulary": config.vocab_size,
        "longest input": config.max_length,
        "calibrated on": stored.calibration.fitted_on if stored.calibration else "nothing",
        **_origin(stored.provenance),
        **_describe_code_reader(metric),
        "device": str(metric.engine.device),
        "signature": metric.signature,
    }
    if options.format == "json":
        tables.show(json.dumps(tables.finite(facts), indent=2) + "\n", options.output)
    else:
        rows = list(facts.items())
        tables.write(tables.Table(("what", "value"), rows, {}), options.format, options.output)


def _origin(provenance: Mapping[str, Any], of: str = "") -> dict[str, Any]:
    """Return the facts of a training that are there: folders of other trainings may lack some."""
    return {of + name.replace("_", " "): provenance[name] for name in _PROVENANCE if name in provenance}


def _describe_code_reader(metric: SimLLM) -> dict[str, Any]:
    """Return the facts about the model that reads code for scores `--against code`."""
    from simllm.model import code_model

    reader, of = metric.code_reader.model, "code reader "
    if not reader:
        return {"code reader": "none; the encoder of summaries reads code, without a column `fits`"}
    return {
        "code reader": str(code_model.packaged()),
        f"{of}parameters": reader.parameters,
        f"{of}calibrated on": reader.info.fits.fitted_on,
        f"{of}weights fitted to": reader.info.both_fitted_on or "nothing",
        **_origin(reader.info.provenance, of),
        f"{of}hash": reader.hash,
    }
