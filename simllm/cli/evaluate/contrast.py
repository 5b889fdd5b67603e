"""`simllm evaluate contrast`: test whether rewordings score higher than texts with another meaning."""

from __future__ import annotations

import argparse
from pathlib import Path

from simllm import optional_packages
from simllm.cli import metrics_option, result_warnings
from simllm.io import output_file
from simllm.io.tables import FORMATS as FORMATS
from simllm.io.tables import Table

HELP = "test whether a rewording scores higher than a change of meaning"
EXAMPLES = """examples:
  simllm evaluate contrast
  simllm evaluate contrast --triples mine.jsonl --metrics simllm,rouge-l -f json
"""


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm evaluate contrast` to its parser."""
    command.add_argument(
        "--triples", type=Path, metavar="FILE",
        help="JSON lines with reference, rewording, change, kind and form; default: the included ones",
    )  # fmt: skip
    metrics_option.add_option(command)


def run(options: argparse.Namespace) -> None:
    """Run `simllm evaluate contrast`: write a table of the metrics' accuracies.

    The accuracy is the share of triples whose rewording scores higher than the text with a changed meaning.
    Ties count half.
    """
    with optional_packages.require_eval_extra():
        from simllm.evaluation import contrast_triples
        from simllm.metrics import registry
        from simllm.metrics.text import jaccard
    output_file.check_output(options.output, [options.triples] if options.triples else [], options.overwrite)
    file = options.triples or contrast_triples.CONTRAST_SET
    triples = contrast_triples.clean_triples(contrast_triples.load(file))
    names = metrics_option.chosen_names(options.metrics, options.model)
    metrics, missing = registry.load_all(names, options.model)
    # The baseline, which only compares words: .5 in balanced triples, 0 in adversarial ones.
    rows = [("word overlap", *contrast_triples.accuracies(jaccard.score, triples))]
    n, ties = len(triples.references), []
    with result_warnings.collected() as messages:
        for name, wins in metrics_option.compute_for_each(
            metrics, missing, lambda score: contrast_triples.rewording_wins(score, triples)
        ):
            rows.append((name, *contrast_triples.accuracies_of(wins, triples)))
            if 2 * (tied := int((wins == 0.5).sum())) > n:
                ties.append(f"{name}: {tied} of {n} triples are ties, which count half")
    about = [*contrast_triples.warnings_about(triples), *messages, *ties]
    columns = ["metric", "all"]
    for what, labels in (("form", triples.forms), ("kind", triples.kinds)):
        # A form and a kind may have the same name.
        columns += [f"{what} {of}" if of in columns else of for of in dict.fromkeys(labels)]
    table = Table(
        columns=columns,
        rows=rows,
        summary={"triples": n, "chance": 0.5, "ties": "count half"},
    )
    metrics_option.write_table(table, missing, options, about)
