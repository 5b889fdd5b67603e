"""Measure a model for its model card, and write the results as JSON.

    python -m train.release.measure runs/contrastive/model -o figures.json
    python -m train.release.measure runs/mine/model comments=mine/comments.jsonl unseen_comments=null

The results show the model's agreement with human ratings, how often it scores a rewording higher than a text
with another meaning, how well it finds the rest of a comment from the first sentence, and its scores of
random pairs of comments.
The option `--config FILE` names a YAML file with the data sets; the default is configs/measure.yaml.
Arguments of the form `key=value` replace settings of this file. In the second example, `comments` names the
file comments.jsonl of another corpus, which `python -m train.corpus build` has made. With
`unseen_comments=null`, no comments of further repositories are used. The results on finding the rest of a
comment, and on random pairs, then come from the comments in comments.jsonl that are held out from training.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.evaluation import contrast, ratings
from simllm.evaluation.correlation import correlate_all, score_by_all
from simllm.io import output_file, reading, tables
from simllm.metric import SimLLM
from simllm.metrics import registry
from simllm.metrics.interface import Metric, pair_scores
from simllm.model.saved_model import shift_prior
from simllm.perturb.summaries import lexicon
from simllm.scoring import token_matching
from simllm.scoring.scores import OUTPUTS, SIMILAR, Scores
from simllm.stats.calibration import calibration_errors, reliability
from simllm.stats.classification import auc_with_covariance
from simllm.stats.correlation import rank_correlations
from train.contrastive.meaning_pairs import MeaningItem, make_triples, read_items
from train.corpus.comments import first_sentence
from train.corpus.decontaminate import ExcludedTexts
from train.release.calibrate import meaning_test_pairs, score_random_pairs
from train.runtime import config as training_config
from train.runtime.command import make_parser, run_command

_SEED = 1
_MODELS = ("sentence-bert=", "nli=")  # metrics that are named by their models, and take long
_FEWEST = 20  # rated pairs of one length, for a correlation
_SAME_ABOVE = (0.5, 0.8)  # probabilities that a random pair should not reach
_RARE = 0.1  # share of pairs with the same meaning, as an example of an uneven one


@dataclass(frozen=True, kw_only=True)
class MeasureConfig:
    """The data sets, and the metrics to compare with."""

    rated: tuple[str, ...]  # files of text pairs with human ratings
    # More such files, which `train.data` cannot fetch; those that are missing are left out.
    also_rated: tuple[str, ...] = ()
    baselines: tuple[str, ...]  # names of other metrics, as for `simllm evaluate --metrics`
    comments: str  # the comments.jsonl of a corpus; its held-out comments are used
    comments_per_language: int  # largest number of comments per programming language for the retrieval
    unseen_comments: str | None = None  # comments.jsonl of repositories that are not trained on; all are used
    random_pairs: int  # number of random pairs of comments
    test_comments: str | None = None  # held-out comments, to test the meaning head's probabilities
    labelled: str | None = None  # held-out labelled pairs, for the same purpose
    items: str | None = None  # meaning items (file or glob pattern); those of the split "test" are used
    unseen_items: str | None = None  # meaning items that no model is trained on; all are used
    examples: tuple[tuple[str, str], ...] = ()  # pairs of texts whose scores the card shows

    def __post_init__(self) -> None:
        if not self.rated:
            raise InputError("rated must name one or more files")

    @property
    def all_rated(self) -> list[str]:
        """The files of both kinds that exist, or must."""
        return [*self.rated, *(file for file in self.also_rated if Path(file).exists())]


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.release.measure", __doc__)
    parser.add_argument("model", type=Path, help="a model folder")
    parser.add_argument(
        "overrides", nargs="*", metavar="key=value", default=[], help="such as rated=[my.jsonl]"
    )
    parser.add_argument("--config", type=Path, default=Path("configs/measure.yaml"), help="%(default)s")
    parser.add_argument("-o", "--output", type=Path, help="JSON to write; default: standard output")
    return run_command(parser, _write, overwrite=True, intermixed=True)


def _write(model: Path, overrides: list[str], config: Path, output: Path | None, overwrite: bool) -> None:
    loaded = training_config.load(MeasureConfig, config, overrides)
    output_file.check_output(output, overwrite, [model, config, *_input_files(loaded)])
    tables.show(json.dumps(measure(model, loaded), indent=1) + "\n", output)


def _input_files(config: MeasureConfig) -> list[Path]:
    """Return the files that the configuration names, by paths or glob patterns."""
    patterns = [*config.all_rated, config.comments, config.unseen_comments, config.test_comments]
    patterns += [config.labelled, config.items, config.unseen_items]
    names = [name for pattern in patterns if pattern for name in (pattern, *glob(pattern))]  # noqa: PTH207 (Path.glob takes no absolute pattern)
    return [Path(name) for name in names]


def check_inputs(config: MeasureConfig, has_head: bool = False) -> None:
    """Check that all files exist, before a training or measurement that takes long; `test_comments` and
    `labelled` are needed only for a model with a meaning head.
    """
    keys = ["rated", "comments", "unseen_comments", *(["test_comments", "labelled"] if has_head else [])]
    named = [(key, value) for key in keys if (value := getattr(config, key))]
    files = [(key, file) for key, value in named for file in ([value] if isinstance(value, str) else value)]
    for key in ("items", "unseen_items"):
        files += [(key, pattern) for pattern in (getattr(config, key),) if pattern and not glob(pattern)]  # noqa: PTH207
    if missing := [f"{key}: {file}" for key, file in files if not Path(file).exists()]:
        raise InputError(f"no such file: {'; '.join(missing)} (change or leave out these settings)")
    _check_held_out(Path(config.comments))


def measure(model: Path, config: MeasureConfig, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Measure a model and the baselines on all data sets.

    Returns JSON values: "signature", "model" and "parameters" (sizes), "spearman" (from `correlate_metrics`,
    by data set), "lengths" (from `correlate_lengths`), "contrast" (from `contrast_accuracies`, by metric),
    "examples", "baselines", and the results of `_measure_meaning`, `measure_reliability` and
    `measure_comments`. Keys without data in the configuration are left out. `before` has earlier figures, of
    this or another model; those of baselines that are the same on the same data are not measured again.
    """
    learned = SimLLM(model)
    check_inputs(config, learned.head is not None)
    own = [registry.model_metric(learned.name, learned)]
    if learned.head:
        outputs = [name for name in OUTPUTS if getattr(learned.no_scores, name) is not None]
        own += [registry.head_metric(f"simllm-{output}", learned, output) for output in outputs]
    baselines, missing = registry.load_all(config.baselines) if config.baselines else ([], {})
    for name, remedy in missing.items():
        warnings.warn(f"{name} is not measured: {remedy}", stacklevel=2)
    known = {
        "data": _hash_of_data(config),
        "signatures": {metric_name(metric.name): metric.signature for metric in baselines},
    }
    kept = _kept_baselines(known, before or {})
    metrics = [*own, *(metric for metric in baselines if metric_name(metric.name) not in kept)]
    triples = contrast.clean_triples(contrast.load())
    figures = {
        "signature": learned.signature,
        "model": measure_size(learned, model),
        "parameters": {
            metric_name(name): parameters
            for name in config.baselines
            if name.startswith(_MODELS) and (parameters := count_parameters(name.partition("=")[2]))
        },
        "baselines": known,
        "spearman": {
            set_name(Path(file)): correlate_metrics(Path(file), metrics) for file in config.all_rated
        },
        "lengths": {
            set_name(Path(file)): found
            for file in config.all_rated
            if (found := correlate_lengths(Path(file), metrics))
        },
        "contrast": {metric_name(metric.name): contrast_accuracies(metric, triples) for metric in metrics},
        **_measure_meaning(metrics, learned, config),
        **measure_reliability(learned, config),
        **measure_comments(learned, config),
        "examples": score_examples(learned, config.examples),
    }
    names = [metric_name(name) for name in (*(metric.name for metric in own), *config.baselines)]
    for key in _BY_METRIC:
        if key in figures:
            figures[key] = _with_rows(figures[key], (before or {}).get(key, {}), kept, names)
    return figures


_BY_METRIC = ("spearman", "lengths", "contrast", "items")  # figures that have rows of baselines


def _hash_of_data(config: MeasureConfig) -> str:
    """Hash the data on which baselines are measured."""
    patterns = [*config.all_rated, *([config.items] if config.items else [])]
    files = [name for pattern in patterns for name in sorted({pattern, *glob(pattern)})]  # noqa: PTH207
    digest = hashlib.sha256(repr(contrast.load()).encode())
    for file in filter(Path.is_file, map(Path, files)):
        digest.update(f"{set_name(file)} {output_file.sha256_of(file)}".encode())
    return digest.hexdigest()[:12]


def _kept_baselines(known: dict[str, Any], before: Mapping[str, Any]) -> set[str]:
    """Return the names of baselines whose earlier figures still hold."""
    earlier = before.get("baselines", {})
    if earlier.get("data") != known["data"]:
        return set()
    return {name for name, value in known["signatures"].items() if earlier["signatures"].get(name) == value}


def _with_rows(found: Any, before: Any, kept: set[str], names: Sequence[str]) -> Any:
    """Add the rows of kept baselines to figures, at any depth, in the order of `names`."""
    if not isinstance(found, dict):
        return found
    before = before or {}
    rows = {name: before[name] for name in kept if name in before}
    inner = {
        key: value if key in names else _with_rows(value, before.get(key), kept, names)
        for key, value in found.items()
    }
    order = {name: number for number, name in enumerate(names)}
    return dict(sorted({**inner, **rows}.items(), key=lambda item: order.get(item[0], -1)))


def measure_size(learned: SimLLM, folder: Path) -> dict[str, int]:
    """Return sizes of a model: "layers", "hidden_size", "vocab_size", "max_length", the numbers of
    "parameters" and "head_parameters", and "bytes" of its weights.
    """
    model = learned.model
    config = model.encoder.config
    return {
        "layers": config.num_hidden_layers,
        "hidden_size": config.hidden_size,
        "vocab_size": config.vocab_size,
        "max_length": config.max_length,
        "parameters": sum(p.numel() for p in model.encoder.parameters()),
        "head_parameters": sum(p.numel() for p in model.head.parameters()) if model.head else 0,
        "bytes": sum(file.stat().st_size for file in folder.glob("*.safetensors")),
    }


def count_parameters(folder: str) -> int:
    """Count the parameters of an encoder in a folder with one or more safetensors files."""
    total = 0
    for file in Path(folder).glob("*.safetensors"):
        with safe_open(file, framework="np") as tensors:
            total += sum(math.prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118
    return total


def set_name(file: Path) -> str:
    """Return the name of a data set: "stsb_en/test" for the file `data/sts/stsb_en/test.jsonl`."""
    # The folder is part of the name, because several folders have a file `test`.
    return f"{file.parent.name}/{file.stem}"


def correlate_metrics(file: Path, metrics: Sequence[Metric]) -> dict[str, Any]:
    """Correlate each metric's scores with the ratings in a file: "rho", and "low" and "high" of its 95%
    interval.

    "pairs" is the number of text pairs.
    """
    result = correlate_all(ratings.load(file), metrics)
    if result.missing:
        raise InputError("; ".join(f"{name}: {remedy}" for name, remedy in result.missing.items()))
    figures = {
        metric_name(row.metric): {"rho": row.spearman, "low": row.low, "high": row.high}
        for row in result.rows
    }
    return {"pairs": result.rows[0].n, **figures}


def correlate_lengths(file: Path, metrics: Sequence[Metric]) -> dict[str, Any]:
    """Correlate scores with ratings separately for "one" sentence and for "several" in one of the texts.

    Each has the number of "pairs" and Spearman's rho by metric; a length with too few pairs is left out.
    Without pairs of several sentences, the result is empty: then the correlation is that of all pairs.
    """
    rated = ratings.load(file)
    pairs = zip(rated.candidates, rated.references, strict=True)
    several = np.array([any(map(_has_several_sentences, pair)) for pair in pairs])
    if several.sum() < _FEWEST:
        return {}
    names = [metric_name(metric.name) for metric in metrics]
    scores = np.array([values for _, values in score_by_all(rated, metrics, {})])
    found = {}
    for name, chosen in (("one", ~several), ("several", several)):
        if chosen.sum() >= _FEWEST:
            people = np.tile(rated.values[chosen], (len(metrics), 1))
            rho = rank_correlations(scores[:, chosen], people).tolist()
            found[name] = {"pairs": int(chosen.sum()), **dict(zip(names, rho, strict=True))}
    return found


def _has_several_sentences(text: str) -> bool:
    return first_sentence(text).strip() != text.strip()


def score_examples(learned: SimLLM, pairs: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Score pairs of texts; for each pair, "texts", "score", and with a head "same"."""
    scores = learned.score([first for first, _ in pairs], [second for _, second in pairs])
    rows = [
        {"texts": list(pair), "score": float(score)} for pair, score in zip(pairs, scores.values, strict=True)
    ]
    for row, same in zip(rows, scores.same if scores.same is not None else (), strict=False):
        row["same"] = float(same)
    return rows


def _measure_meaning(metrics: Sequence[Metric], learned: SimLLM, config: MeasureConfig) -> dict[str, Any]:
    """Measure metrics and the meaning head on meaning items: "items", and with a head "flags" and
    "unseen_items".
    """
    nothing_excluded, held_out = ExcludedTexts([]), lexicon.load().held_out_words
    figures: dict[str, Any] = {}
    if config.items is not None:
        test = read_items(config.items, "test", nothing_excluded, held_out)
        # Models have rows on the contrast set, and take long.
        figures["items"] = measure_items([m for m in metrics if not m.name.startswith(_MODELS)], test)
        if learned.head:
            figures["flags"] = measure_flags(learned, test)
    if config.unseen_items is not None and learned.head:
        unseen = read_items(config.unseen_items, None, nothing_excluded, held_out)
        figures["unseen_items"] = measure_unseen_items(learned, unseen)
    return figures


def metric_name(metric: str) -> str:
    """Return a short name of a metric: "word-vectors" for "word-vectors=FILE", "mini" for an encoder
    "sentence-bert=folder/mini".
    """
    name, _, argument = metric.partition("=")
    return Path(argument).name if metric.startswith(_MODELS) else name


def contrast_accuracies(metric: Metric, triples: contrast.Triples) -> dict[str, dict[str, float]]:
    """Compute a metric's accuracy on triples, by their form and kind of change ("all" is for all kinds)."""
    wins, forms, kinds = (
        contrast.rewording_wins(partial(pair_scores, metric), triples),
        np.array(triples.forms),
        np.array(triples.kinds),
    )
    return {
        form: {
            # A tie counts as half a win.
            "all": float(wins[forms == form].mean()),
            **contrast.mean_by_label(list(kinds[forms == form]), wins[forms == form]),
        }
        for form in dict.fromkeys(triples.forms)
    }


def measure_items(metrics: Sequence[Metric], items: list[MeaningItem]) -> dict[str, Any]:
    """Compute the accuracies of metrics on the triples of meaning items, and the number of "triples"."""
    triples = make_triples(items)
    accuracies = {metric.name: contrast_accuracies(metric, triples)["written"] for metric in metrics}
    figures = {metric_name(name): kinds for name, kinds in accuracies.items()}
    return {"triples": len(triples.references), **figures}


def measure_flags(learned: SimLLM, items: list[MeaningItem]) -> dict[str, Any]:
    """Count how often a model warns, for similar pairs of texts, that the meaning may have changed.

    "rewordings" and "changes" each have the number of pairs that score .4 or more ("similar") and the share
    of these pairs that get the warning ("flagged").
    """
    return _flags(*_score_with_main_text(learned, items))


def measure_unseen_items(learned: SimLLM, items: list[MeaningItem]) -> dict[str, Any]:
    """Measure how well a model tells rewordings from changes, on items on which it was not trained.

    "auc" has the areas under the ROC curve for the score and for the probability of the same meaning: the
    probability that a random rewording gets a higher value than a random change of any item.
    """
    rewordings, changes = _score_with_main_text(learned, items)
    is_rewording = np.arange(len(rewordings.values) + len(changes.values)) < len(rewordings.values)
    auc = {}
    for name, scale in (("simllm", "raw"), ("simllm-same", "same")):
        values = np.concatenate([rewordings.on(scale), changes.on(scale)])
        auc[name] = float(auc_with_covariance(is_rewording, values[None])[0][0])
    return {"items": len(items), "auc": auc, "flags": _flags(rewordings, changes)}


def _score_with_main_text(learned: SimLLM, items: list[MeaningItem]) -> tuple[Scores, Scores]:
    """Score the rewordings of all items, and the changes of all items, against the main texts."""
    rewordings = [(text, item.same[0]) for item in items for text in item.same[1:]]
    changes = [(text, item.same[0]) for item in items for text in item.different]
    first, second = (
        learned.score([text for text, _ in pairs], [main for _, main in pairs])
        for pairs in (rewordings, changes)
    )
    return first, second


def _flags(rewordings: Scores, changes: Scores) -> dict[str, Any]:
    flags = {}
    for name, scores in (("rewordings", rewordings), ("changes", changes)):
        similar = int((scores.values >= SIMILAR).sum())
        flags[name] = {"similar": similar, "flagged": int(scores.changed.sum()) / max(similar, 1)}
    return flags


def measure_reliability(learned: SimLLM, config: MeasureConfig) -> dict[str, Any]:
    """Measure how well the probabilities agree with the labels of pairs that did not calibrate them.

    The key "reliability" has the number of pairs, the accuracy, the expected calibration error and the bins
    of the reliability diagram; it is missing without a meaning head or without data. Under "rare" are the
    figures for a tenth of pairs with the same meaning, with probabilities for this prior.
    """
    if not (learned.head and config.test_comments and config.labelled):
        return {}
    # Drawn with the same seed as for `calibrate_meaning`, which uses the other half.
    pairs = meaning_test_pairs(Path(config.test_comments), Path(config.labelled), config.items)[1::2]
    same = learned.score([pair.first for pair in pairs], [pair.second for pair in pairs]).on("same")
    labels = np.array([pair.label for pair in pairs])
    # All different pairs, and so many others that they are a tenth.
    positive, negative = np.flatnonzero(labels > 0.5), np.flatnonzero(labels <= 0.5)
    fewer = round(len(negative) * _RARE / (1 - _RARE))
    rare = np.concatenate([positive[:fewer], negative])
    figures = _reliability_figures(same, labels)
    figures["rare"] = {
        "prior": _RARE,
        **_reliability_figures(shift_prior(same[rare], _RARE), labels[rare]),
    }
    return {"reliability": figures}


def _reliability_figures(same: Floats, labels: Floats) -> dict[str, Any]:
    """Compare (n,) probabilities of the same meaning with their (n,) labels, 0 or 1."""
    diagram = reliability(same, labels)
    return {
        "pairs": len(labels),
        "accuracy": float(((same >= 0.5) == (labels > 0.5)).mean()),
        "ece": calibration_errors(diagram)[0],
        "bins": [each._asdict() for each in diagram],
    }


def measure_comments(metric: SimLLM, config: MeasureConfig) -> dict[str, Any]:
    """Measure retrieval by programming language ("languages"), and the scores of random pairs
    ("random_pairs").

    The retrieval uses `unseen_comments` of the configuration if given ("unseen"), or else the held-out
    comments of `comments`, as the random pairs do.
    """
    compared = read_summaries_and_descriptions(Path(config.comments), ("test",))
    if config.unseen_comments:
        compared = read_summaries_and_descriptions(Path(config.unseen_comments), ("train", "test"))
    random = np.random.default_rng(_SEED)
    languages = {}
    for language, pairs in sorted(compared.items()):
        chosen = random.permutation(len(pairs))[: config.comments_per_language]
        languages[language] = measure_retrieval(metric, [pairs[number] for number in chosen])
    summaries = sorted({row["summary"] for _, row in _read_comments(Path(config.comments), ("test",))})
    return {
        "languages": languages,
        "unseen": bool(config.unseen_comments),
        "random_pairs": _score_random_pairs(metric, summaries, config.random_pairs),
    }


def measure_retrieval(metric: SimLLM, pairs: list[tuple[str, str]]) -> dict[str, float]:
    """Return the number of pairs, the share of summaries with their description on rank 1, and the MRR."""
    summaries, descriptions = (metric.embed(list(texts)) for texts in zip(*pairs, strict=True))
    cosines = token_matching.cosines(summaries, descriptions)
    # Ties count for the model: only a higher cosine pushes the own description down.
    rank = (cosines > cosines.diagonal()[:, None]).sum(axis=1) + 1
    return {"pairs": len(pairs), "first": float((rank == 1).mean()), "mrr": float((1 / rank).mean())}


def _score_random_pairs(metric: SimLLM, texts: list[str], number: int) -> dict[str, Any]:
    """Return the mean, the median, and the 5% and 95% quantiles of the scores of random pairs.

    With a meaning head, "same_above" has the shares of pairs whose probability is above some thresholds.
    """
    scores = score_random_pairs(metric, texts, number)
    quantiles = np.quantile(scores.values, [0.05, 0.5, 0.95]).tolist()
    figures: dict[str, Any] = {"pairs": len(scores.values), "mean": scores.mean}
    figures |= dict(zip(("p5", "median", "p95"), quantiles, strict=True))
    if scores.same is not None:
        figures["same_above"] = {f"{least:g}": float((scores.same > least).mean()) for least in _SAME_ABOVE}
    return figures


def _read_comments(comments: Path, splits: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the comments of the splits, each with its place in the file."""
    for where, row in reading.objects(comments):
        reading.text_under(row, "summary", where)
        if reading.text_under(row, "split", where) in splits:
            yield where, row


def _check_held_out(comments: Path) -> None:
    summaries = (row["summary"] for _, row in _read_comments(comments, ("test",)))
    first = next(summaries, None)
    if next((other for other in summaries if other != first), None) is None:
        raise InputError(f"comments: {comments}: fewer than two held-out comments")


def read_summaries_and_descriptions(
    comments: Path, splits: tuple[str, ...]
) -> dict[str, list[tuple[str, str]]]:
    """Read (summary, description of four or more words) of the splits, by programming language.

    A corpus of plain summaries has no descriptions: the result is empty.
    """
    read: dict[str, list[tuple[str, str]]] = {}
    for where, row in _read_comments(comments, splits):
        row = {"description": "", "language": "unknown", **row}
        summary, description, language = (
            reading.text_under(row, name, where) for name in ("summary", "description", "language")
        )
        # A description repeats the summary as its first sentence, which would give the answer away.
        rest = description.removeprefix(summary).strip()
        if len(rest.split()) > 3:
            read.setdefault(language, []).append((summary, rest))
    return read


if __name__ == "__main__":
    sys.exit(main())
