"""The model card of a release, in Markdown: the model, its training, and its figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simllm.errors import InputError
from simllm.model import saved_model

# What the card tells about each training stage, by the names in its provenance.
_FACTS: tuple[str, ...] = ("updates", "tokens", "epochs", "seconds", "test_perplexity", "dev_criterion")
_FACTS += ("texts", "teachers", "hardware", "date", "git_revision")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a header and rows of cells as a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def describe_model(model: Path) -> str:
    """Return the beginning of the card: YAML header, name, size and hashes of the model."""
    loaded = saved_model.load(model)
    config = loaded.encoder.config
    parameters = sum(p.numel() for p in loaded.encoder.parameters())
    return (
        "---\nlibrary_name: simllm\ntags: [sentence-similarity, code-summarization]\n---\n\n"
        "# The default model of simllm\n\n"
        f"{config.num_hidden_layers} layers of {config.hidden_size}, {config.vocab_size:,} tokens, "
        f"{parameters / 1e6:.1f}M parameters, stored as float16; longest input {config.max_length} tokens. "
        f"Model hash {loaded.hash}, tokenizer hash {loaded.tokenizer.hash}."
    )


def describe_training(runs: Sequence[Path]) -> list[str]:
    """Return the section about the training runs, which are given in the order in which they trained."""
    parts: list[str] = ["## Training"]
    configurations: list[dict[str, Any]] = []
    for number, folder in enumerate(runs, 1):
        stage = saved_model.load(folder / "model").info.provenance
        if not {"objective", "config"} <= set(stage):
            raise InputError(f"{folder / 'model'}: has no objective and config in its provenance")
        rows = [[name.replace("_", " "), f"{stage[name]}"] for name in _FACTS if name in stage]
        for name in ("corpus_counts", "pairs"):
            counts = stage.get(name, {})
            rows += [
                [f"{name.split('_')[0]}: {Path(key).name}", f"{count:,}"] for key, count in counts.items()
            ]
        rows.append(["configuration", describe_configuration(stage["config"], configurations)])
        configurations.append(stage["config"])
        parts += [f"### {number}. {stage['objective']} ({folder.name})", markdown_table(["", ""], rows)]
    return [*parts, "The logs are beside this file."]


def describe_configuration(configuration: dict[str, Any], earlier: Sequence[dict[str, Any]]) -> str:
    """Describe the configuration of a stage, or its differences from the most similar earlier stage."""
    changes = {
        number: {key: value for key, value in configuration.items() if other[key] != value}
        for number, other in enumerate(earlier, 1)
        if other.keys() == configuration.keys()
    }
    if not changes:
        return f"`{json.dumps(configuration)}`"
    nearest = min(changes, key=lambda number: len(json.dumps(changes[number])))
    return f"like stage {nearest}, except `{json.dumps(changes[nearest])}`"


def figure_sections(figures: dict[str, Any]) -> list[str]:
    """Return the sections that report figures; "held_out" has the figures of the control model, if there is
    one.
    """
    return [
        "## Agreement with people",
        "Spearman's correlation with human ratings, and its 95% bootstrap interval.",
        _agreement(figures["spearman"]),
        "## Meaning over words",
        "The share of triples in which a rewording scores higher than a change of meaning. In balanced "
        "triples both share equally many words with the reference, so word overlap gets 50%; in "
        "adversarial triples the change shares more words, so word overlap gets 0%.",
        *_contrast(figures),
        *_items(figures.get("items")),
        *_flags(figures.get("flags")),
        *_unseen_items(figures.get("unseen_items")),
        *_reliability(figures.get("reliability")),
        "## Languages",
        ("Comments of repositories that are not trained on" if figures.get("unseen") else "Held-out comments")
        + ": how often a summary is nearest to the description in its own comment, among all pairs of its "
        "language, and the mean reciprocal rank.",
        _languages(figures["languages"]),
        "## What a score means",
        "Two random held-out comments score {mean:.2f} on average (median {median:.2f}, 5th percentile "
        "{p5:.2f}, 95th {p95:.2f}).".format(**figures["random_pairs"]),
    ]


def _agreement(sets: dict[str, Any]) -> str:
    """Return the table of Spearman's correlations with human ratings, by data set and metric."""
    metrics = [name for name in next(iter(sets.values())) if name != "pairs"]
    rows = [
        [
            name,
            f"{figures['pairs']:,}",
            *("{rho:.4f} [{low:.3f}, {high:.3f}]".format(**figures[m]) for m in metrics),
        ]
        for name, figures in sets.items()
    ]
    return markdown_table(["ratings", "pairs", *metrics], rows)


def _contrast(figures: dict[str, Any]) -> list[str]:
    """Return the table of accuracies on the contrast set, and a paragraph about the control model, if there
    is one.
    """
    metrics, intro = figures["contrast"], []
    if "held_out" in figures:
        control = figures["held_out"]
        own = [name for name in control["contrast"] if name.startswith("simllm")]
        controls = {name.replace("simllm", "control"): control["contrast"][name] for name in own}
        metrics = {**{name: metrics[name] for name in own}, **controls, **metrics}
        intro = [
            "The model was trained without these triples, but with word lists that contain their deciding "
            "words. The *control* model, which was trained without these words, shows the accuracy on unseen "
            "words. Its figures: {}.".format(
                ", ".join(f"{name} {value:.3f}" for name, value in _main_figures(control).items())
            )
        ]
    forms = list(next(iter(metrics.values())))
    kinds = list(metrics["simllm"][forms[0]])
    header = ["kind", *(f"{name}, {form}" for form in forms for name in metrics)]
    rows = [[kind, *(f"{metrics[m][form][kind]:.0%}" for form in forms for m in metrics)] for kind in kinds]
    return [*intro, markdown_table(header, rows)]


def _items(figures: dict[str, Any] | None) -> list[str]:
    """Return the section on meaning items, with a table of accuracies by kind of change and metric."""
    if figures is None:
        return []
    metrics = [name for name in figures if name != "triples"]
    kinds = sorted(figures["simllm"], key=lambda kind: kind != "all")
    rows = [[kind, *(f"{figures[name][kind]:.0%}" for name in metrics)] for kind in kinds]
    return [
        "## Meaning items",
        f"The same share on {figures['triples']:,} triples of held-out meaning items. They were written like "
        "those that the model was trained on.",
        markdown_table(["kind", *metrics], rows),
    ]


def _flags(figures: dict[str, Any] | None) -> list[str]:
    """Return the paragraph on how often rewordings (false alarms) and changes get the warning."""
    if figures is None:
        return []
    shares = [f"{figures[name]['flagged']:.0%} of {figures[name]['similar']:,}" for name in figures]
    return [
        'The note "meaning may have changed" marks texts that are similar (a score of .4 or more), but whose '
        "meaning probably differs. On these items, it marks {} similar rewordings, and {} similar "
        "changes.".format(*shares)
    ]


def _unseen_items(figures: dict[str, Any] | None) -> list[str]:
    """Return the paragraph on items on which no model was trained."""
    if figures is None:
        return []
    areas = {name: f"{area:.3f}".lstrip("0") for name, area in figures["auc"].items()}
    shares = [f"{row['flagged']:.0%} of {row['similar']:,}" for row in figures["flags"].values()]
    return [
        f"On {figures['items']:,} realistic meaning items by other writers, none of which was trained on, a "
        "rewording gets a higher value than a change, of any item, with this probability (AUC): "
        + ", ".join(f"{name} {area}" for name, area in areas.items())
        + ". There, the note marks {} similar rewordings, and {} similar changes.".format(*shares)
    ]


def _reliability(figures: dict[str, Any] | None) -> list[str]:
    """Return the section on the calibrated probability of the same meaning."""
    if figures is None:
        return []
    rows = [[f"{b['probability']:.2f}", f"{b['share']:.2f}", f"{b['size']:,}"] for b in figures["bins"]]
    return [
        "## Probability of the same meaning",
        "{accuracy:.0%} of {pairs:,} held-out pairs, half with the same meaning, are on the right side of "
        ".5; the expected calibration error is {ece:.3f}. Of the pairs with about this probability, this "
        "share has the same meaning:".format(**figures),
        markdown_table(["probability", "share", "pairs"], rows),
    ]


def _languages(figures: dict[str, Any]) -> str:
    """Return the table of retrieval by programming language."""
    rows = [[name, f"{x['pairs']}", f"{x['first']:.0%}", f"{x['mrr']:.3f}"] for name, x in figures.items()]
    return markdown_table(["language", "pairs", "nearest", "MRR"], rows)


def _main_figures(figures: dict[str, Any]) -> dict[str, float]:
    """Return Spearman's rho on each data set, and the accuracies on the contrast set, by form."""
    correlations = {name: metrics["simllm"]["rho"] for name, metrics in figures["spearman"].items()}
    return correlations | {form: kinds["all"] for form, kinds in figures["contrast"]["simllm"].items()}


def seeds_section(runs: dict[str, dict[str, Any]]) -> list[str]:
    """Return the section that compares runs with different seeds, from their figures by the run's name."""
    columns = {name: _main_figures(figures) for name, figures in runs.items()}
    rows = list(columns.values())
    lines = [
        [name, *(f"{row[name]:.3f}" for row in rows), f"{np.std([row[name] for row in rows], ddof=1):.3f}"]
        for name in rows[0]
    ]
    header = ["", *columns, "standard deviation"]
    intro = "The last training with several seeds; the run with the best dev criterion is released."
    return ["## Seeds", intro, markdown_table(header, lines)]


def ablations_section(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the section about ablations, from the results that `train.release.ablations` wrote."""
    lines = [[row["variant"], *(f"{value:.3f}" for value in _main_figures(row).values())] for row in rows]
    intro = (
        "Short trainings, with one seed each; differences of .01 are noise. The first row is a shortened "
        "recipe: two stages, with few updates. Each of the other rows changes one thing."
    )
    return ["## Ablations", intro, markdown_table(["variant", *_main_figures(rows[0])], lines)]
