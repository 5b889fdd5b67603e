"""The model card of a release, in Markdown: the model, its training, and its evaluation results."""

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
    """Return the beginning of the model card: the name, size and hashes of the model.

    Args:
        model: The model folder.

    Returns:
        The text in Markdown, with a YAML header.
    """
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
    """Return the section of the model card about the training.

    Args:
        runs: The folders of the training runs, in the order in which they trained.

    Returns:
        The paragraphs of the section, in Markdown.

    Raises:
        InputError: A run has not stored its objective and its configuration with its model.
    """
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
    """Describe the configuration of a training stage, or its differences from that of an earlier stage.

    Args:
        configuration: The configuration, by key.
        earlier: The configurations of the stages before, in order.

    Returns:
        All keys and values, as JSON in Markdown. But if configurations in `earlier` have the same keys, the
        text names the most similar of them by its number, from 1, and has only the values that differ from
        it: "like stage 2, except ...".
    """
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
    """Return the sections of the model card that report measurements.

    One section reports accuracies on the contrast set, a test set of triples: a reference, a rewording and a
    text with another meaning. In many triples, two words make the difference in meaning, such as "attaches"
    and "detaches". The released model saw these word pairs in training. The section can also report a
    control model, which was trained without these word pairs.

    Args:
        figures: The figures of the released model, from `train.release.measure`. The key "held_out" may be
            added, with the figures of the control model.

    Returns:
        Headings, paragraphs and tables in Markdown.
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
    """Return a Markdown table of Spearman's correlations with human ratings, by data set and metric.

    Args:
        sets: For each data set with human ratings, the result of `train.release.measure.correlate_metrics`.
    """
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
    """Return the model card's table of accuracies on the contrast set, which is a test set.

    A triple of the contrast set is a reference, a rewording and a text with another meaning. A metric is
    right if the rewording scores higher than the text with another meaning. The table has the accuracies of
    the metrics. The first row is for all kinds of meaning change. Each other row is for one kind, such as
    "negation".

    In many triples, two words make the difference in meaning, such as "attaches" and "detaches". A control
    model may have been trained without these words. Then the table has columns for the control model, too.

    Args:
        figures: The evaluation results of the released model. The results of the control model, if there is
            one, are under the key "held_out".

    Returns:
        A paragraph that introduces the control model, if there is one, and the table, in Markdown.
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
    """Return the model card's section on how well metrics tell rewordings from texts with another meaning.

    The section has a table with a column for each metric. The first row is for all kinds of meaning change.
    Each other row is for one kind, such as "negation". A cell shows how often the metric scores a rewording
    of a text higher than a text with another meaning. The texts come from meaning items: a main text,
    rewordings, and texts with other meanings.

    Args:
        figures: The result of `train.release.measure_meaning.measure_items`, or None.

    Returns:
        The heading, a paragraph and the table. The list is empty if `figures` is None.
    """
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
    """Return the model card's paragraph on how often the model warns that a meaning may have changed.

    The warning is the note "meaning may have changed". The model gives this note to two texts if their score
    is high, but their meanings probably differ. The paragraph says how often rewordings get the note (false
    alarms), and how often texts with another meaning get it. Only texts with a high score are counted.

    Args:
        figures: The result of `train.release.measure_meaning.measure_flags`, or None.

    Returns:
        A list with the paragraph. The list is empty if `figures` is None.
    """
    if figures is None:
        return []
    shares = [f"{figures[name]['flagged']:.0%} of {figures[name]['similar']:,}" for name in figures]
    return [
        'The note "meaning may have changed" marks texts that are similar (a score of .4 or more), but whose '
        "meaning probably differs. On these items, it marks {} similar rewordings, and {} similar "
        "changes.".format(*shares)
    ]


def _unseen_items(figures: dict[str, Any] | None) -> list[str]:
    """Return the model card's paragraph on how well the model recognizes a changed meaning in unseen texts.

    The texts come from meaning items that were never used in training. A meaning item has a main text,
    rewordings, and texts with other meanings.

    Args:
        figures: The result of `train.release.measure_meaning.measure_unseen_items`, or None.

    Returns:
        A list with the paragraph. The list is empty if `figures` is None.
    """
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
    """Return the model card's section on how reliable the predicted probability of the same meaning is.

    The meaning head, a part of the model, predicts the probability that two texts have the same meaning.

    Args:
        figures: The value of the key "reliability" in the result of
            `train.release.meaning_head_calibration.measure_reliability`, or None.

    Returns:
        The heading, a paragraph and a table. The list is empty if `figures` is None.
    """
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
    """Return a table of the model's results in retrieval, for each programming language.

    The query is the first sentence of a code comment. The model must find the rest of the same comment among
    the comments in that language.

    Args:
        figures: The results for each language, by its name. `measure_comments` in
            `train.release.retrieval_and_random_pairs` returns them under the key "languages".
    """
    rows = [[name, f"{x['pairs']}", f"{x['first']:.0%}", f"{x['mrr']:.3f}"] for name, x in figures.items()]
    return markdown_table(["language", "pairs", "nearest", "MRR"], rows)


def _main_figures(figures: dict[str, Any]) -> dict[str, float]:
    """Return the most important evaluation results of a model, by name.

    The results are Spearman's rho on each data set with human ratings, and two accuracies on a test set, the
    contrast set. The contrast set has triples: a reference, a rewording and a change (a text with another
    meaning). The first accuracy, "balanced", is for triples in which the rewording and the change share
    equally many words with the reference. The second accuracy, "adversarial", is for triples in which the
    change shares more words with the reference than the rewording does.

    Args:
        figures: All evaluation results of the model, from `train.release.measure`.
    """
    correlations = {name: metrics["simllm"]["rho"] for name, metrics in figures["spearman"].items()}
    return correlations | {form: kinds["all"] for form, kinds in figures["contrast"]["simllm"].items()}


def seeds_section(runs: dict[str, dict[str, Any]]) -> list[str]:
    """Return the section of the model card that compares training runs with different seeds.

    Args:
        runs: The figures of each run, from `train.release.measure`, by the run's name.

    Returns:
        A heading, a paragraph and a table in Markdown. The table has a row for each important result, such as
        Spearman's rho on a data set. A row has the result of each run, and the standard deviation.
    """
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
    """Return the section of the model card about ablations (variants of the training recipe).

    Args:
        rows: The results of the variants, as `train.release.ablations` writes them.

    Returns:
        A heading, a paragraph and a table in Markdown.
    """
    lines = [[row["variant"], *(f"{value:.3f}" for value in _main_figures(row).values())] for row in rows]
    intro = (
        "Short trainings, with one seed each; differences of .01 are noise. The first row is a shortened "
        "recipe: two stages, with few updates. Each of the other rows changes one thing."
    )
    return ["## Ablations", intro, markdown_table(["variant", *_main_figures(rows[0])], lines)]
