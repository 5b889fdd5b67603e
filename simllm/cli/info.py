"""`simllm info`: describe a model folder and how its model was trained."""

from __future__ import annotations

import json
from dataclasses import dataclass

from simllm.cli.shared_options import CommonOptions
from simllm.io import output_file, tables
from simllm.io.tables import FORMATS as FORMATS

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
    # Folders of other trainings may lack some of these facts.
    origin = {name: stored.provenance[name] for name in _PROVENANCE if name in stored.provenance}
    facts = {
        "folder": str(options.model or default_model()),
        "parameters": sum(weight.size for weight in metric.model.weights.values()),
        "layers": config.num_hidden_layers,
        "hidden size": config.hidden_size,
        "vocabulary": config.vocab_size,
        "longest input": config.max_length,
        "calibrated on": stored.calibration.fitted_on if stored.calibration else "nothing",
        **{name.replace("_", " "): value for name, value in origin.items()},
        "device": str(metric.engine.device),
        "signature": metric.signature,
    }
    if options.format == "json":
        tables.show(json.dumps(tables.finite(facts), indent=2) + "\n", options.output)
    else:
        rows = list(facts.items())
        tables.write(tables.Table(("what", "value"), rows, {}), options.format, options.output)
