"""`simllm evaluate contrast`: test whether rewordings score higher than texts with another meaning."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from simllm.cli import results, shared_options
from simllm.cli.shared_options import CommonOptions
from simllm.io import output_file, packages
from simllm.io.tables import FORMATS as FORMATS
from simllm.io.tables import Table

EXAMPLES = """examples:
  simllm evaluate contrast
  simllm evaluate contrast --triples mine.jsonl --metrics simllm,rouge-l -f json
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm evaluate contrast`."""

    triples: Path | None = None
    metrics: str | None = None
    model: str | None = None


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm evaluate contrast` to its parser."""
    command.add_argument(
        "--triples", type=Path, metavar="FILE",
        help="JSON lines with reference, rewording, change, kind and form; default: the included ones",
    )  # fmt: skip
    shared_options.add_metrics_option(command)


def run(options: Options) -> None:
    """Run `simllm evaluate contrast`: write a table of the metrics' accuracies.

    The accuracy is the share of triples whose rewording scores higher than the text with a changed meaning.
    Ties count half.
    """
    with packages.require_eval_extra():
        from simllm.evaluation import contrast
        from simllm.metrics import registry
        from simllm.metrics.text.words import jaccard
    output_file.check_output(options.output, options.overwrite)
    file = options.triples or contrast.CONTRAST_SET
    triples = contrast.clean_triples(contrast.load(file))
    names = shared_options.chosen_names(options.metrics, options.model)
    metrics, missing = registry.load_all(names, options.model)
    # The baseline, which only compares words: .5 in balanced triples, 0 in adversarial ones.
    rows = [("word overlap", *contrast.accuracies(jaccard, triples))]
    n, ties = len(triples.references), []
    with results.collected() as messages:
        for name, wins in shared_options.compute_for_each(
            metrics, missing, lambda score: contrast.rewording_wins(score, triples)
        ):
            rows.append((name, *contrast.accuracies_of(wins, triples)))
            if 2 * (tied := int((wins == 0.5).sum())) > n:
                ties.append(f"{name}: {tied} of {n} triples are ties, which count half")
    about = [*contrast.warnings_about(triples), *messages, *ties]
    columns = ["metric", "all"]
    for what, labels in (("form", triples.forms), ("kind", triples.kinds)):
        # A form and a kind may have the same name.
        columns += [f"{what} {of}" if of in columns else of for of in dict.fromkeys(labels)]
    table = Table(
        columns=columns,
        rows=rows,
        summary={"triples": n, "chance": 0.5, "ties": "count half"},
    )
    shared_options.write_table(table, missing, options, about)
