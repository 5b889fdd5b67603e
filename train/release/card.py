"""The tables of a model card, in Markdown, from the figures of `train.release.measure`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def tables(figures: dict[str, Any]) -> list[str]:
    """Agreement with people, meaning over words, languages and unrelated texts."""
    return [
        "## Agreement with people",
        "Spearman's correlation with human ratings, and its 95% bootstrap interval.",
        _agreement(figures["spearman"]),
        "## Meaning over words",
        "The share of triples in which a rewording scores higher than a change of meaning; where both "
        "share equally many words with the reference (balanced: overlap alone gets 50%), and where the "
        "change shares more (adversarial: 0%).",
        *_contrast(figures),
        "## Languages",
        "Held-out comments: how often a summary is nearest to the rest of its own description, among "
        "as many of its language; and the mean reciprocal rank.",
        _languages(figures["languages"]),
        "## What a score means",
        "Two random held-out comments score {mean:.2f} on average (median {median:.2f}, 5th percentile "
        "{p5:.2f}, 95th {p95:.2f}).".format(**figures["random_pairs"]),
    ]


def _agreement(sets: dict[str, Any]) -> str:
    metrics = [name for name in next(iter(sets.values())) if name != "pairs"]
    rows = [
        [
            name,
            f"{found['pairs']:,}",
            *("{rho:.4f} [{low:.3f}, {high:.3f}]".format(**found[m]) for m in metrics),
        ]
        for name, found in sets.items()
    ]
    return table(["ratings", "pairs", *metrics], rows)


def _contrast(figures: dict[str, Any]) -> list[str]:
    """The table; where the model has a twin that has learned less, with a column of its own."""
    metrics, said = figures["contrast"], []
    if "held_out" in figures:
        twin = figures["held_out"]
        metrics = {"simllm": metrics["simllm"], "twin": twin["contrast"]["simllm"], **metrics}
        said = [
            "The model has seen none of these triples, but word lists with the words that they turn on. Its "
            f"*twin*, one run of {twin['updates']:,} updates on lists without these words, shows what "
            "the recipe makes of words that no list holds: {}.".format(
                ", ".join(f"{name} {value:.3f}" for name, value in _row(twin).items())
            )
        ]
    forms = list(next(iter(metrics.values())))
    kinds = list(metrics["simllm"][forms[0]])
    header = ["kind", *(f"{name}, {form}" for form in forms for name in metrics)]
    rows = [[kind, *(f"{metrics[m][form][kind]:.0%}" for form in forms for m in metrics)] for kind in kinds]
    return [*said, table(header, rows)]


def _languages(found: dict[str, Any]) -> str:
    rows = [[name, f"{x['pairs']}", f"{x['first']:.0%}", f"{x['mrr']:.3f}"] for name, x in found.items()]
    return table(["language", "pairs", "nearest", "MRR"], rows)


def _row(figures: dict[str, Any]) -> dict[str, float]:
    row = {name: found["simllm"]["rho"] for name, found in figures["spearman"].items()}
    return row | {form: kinds["all"] for form, kinds in figures["contrast"]["simllm"].items()}


def seeds(runs: dict[str, dict[str, Any]]) -> list[str]:
    """The figures of runs by their names, and their spread."""
    columns = {name: _row(figures) for name, figures in runs.items()}
    rows = list(columns.values())
    lines = [
        [name, *(f"{row[name]:.3f}" for row in rows), f"{np.std([row[name] for row in rows], ddof=1):.3f}"]
        for name in rows[0]
    ]
    header = ["", *columns, "standard deviation"]
    said = "The second stage with several seeds; the one that agreed best on dev is released."
    return ["## Seeds", said, table(header, lines)]


def ablations(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What each ingredient gives."""
    lines = [[row["variant"], *(f"{value:.3f}" for value in _row(row).values())] for row in rows]
    intro = (
        'Short runs of the second stage, one seed each, so that .01 is noise. Those of "short pretraining" '
        "have a short first stage of their own and are to be compared with each other, all else with "
        '"recipe".'
    )
    return ["## What each ingredient gives", intro, table(["variant", *_row(rows[0])], lines)]
