r"""Measure scores of summaries against code: on rated summaries, and on functions of unseen repositories.

    python -m train.code_reader.measure --pairs runs/code-pairs-unseen.jsonl --rated ../rated/*_dev.jsonl
    python -m train.code_reader.measure … --model runs/code-reader/model --dev runs/code-pairs.jsonl \
        --release checkpoints/code

For rated summaries, it prints Spearman's correlation with the ratings: of the score against the code, of that
against the reference, and of both combined. The weights in the scores against code and against both are
fitted to the rated summaries; their figures are cross-validated by function. With `--dev`, the weights are
also fitted to the functions of the dev split of that file, so that the score tells true summaries from wrong
ones, and `fits` is calibrated on them. `--release` writes the model, with these weights and all figures.

For the functions, it prints how well the true summary is told from that of a sibling and from a changed
summary, by the score and by `fits`: the AUC, and the share of functions whose own summary scores higher. Then
how far the score moves if the code is rewritten, as a share of the standard deviation of the scores of all
functions. Last, which `fits` 10% of the statements of true summaries lie below, and how many statements about
other functions do: below it, a statement counts as unsupported by the code.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from simllm.analysis import golden_scores
from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.evaluation.code_robustness import (
    MUTANT,
    REWRITING,
    make_code_edits,
    measure_code_robustness,
)
from simllm.io import reading
from simllm.io.output_folder import OutputFolder
from simllm.io.tables import list_some
from simllm.metric import SimLLM
from simllm.metrics.interface import Example
from simllm.model import code_model
from simllm.model.code_model import CodeModel
from simllm.model.saved_model import MeaningInfo
from simllm.perturb.summaries import lexicon
from simllm.perturb.summaries.meaning_changes import change
from simllm.scoring.code import CodePair, CodeReader, FitScores, code_pairs
from simllm.stats.calibration import fit_platt
from simllm.stats.classification import area_under_roc
from simllm.text_cleaning import clean, divide
from train.contrastive.near_duplicate_pairs import extract_content_words
from train.release.card import SETS, decimal, markdown_table
from train.runtime.command import make_parser, run_command
from train.runtime.config import shorten_paths

_SEED = 1  # that of `simllm evaluate robustness`, so that both find the same figures
_FOLDS = 10
_DEV_TRIALS = 1_000  # functions of the dev split
_SIBLINGS = 4  # siblings drawn for a function, with replacement; one alone moves the AUC by .001
_FALSE_ALARMS = 0.1  # share of the statements of true summaries that count as unsupported


@dataclass(frozen=True)
class Function:
    """A function with its cleaned summary, and as it was `written`; `variant` is "" if there is none."""

    code: str
    summary: str
    written: str
    language: str
    repository: str
    path: str
    name: str
    variant: str


def read_functions(file: Path, split: str | None) -> Iterator[Function]:
    """Read the functions of one split, or of all, from the output of `train.code_reader.pairs`."""
    for where, row in reading.objects(file):
        if split is None or row.get("split") == split:
            texts = [reading.text_under(row, name, where) for name in ("code", "summary", "language")]
            place = [str(row.get(name, "")) for name in ("repository", "path", "function", "variant")]
            yield Function(texts[0], clean(texts[1]), *texts[1:], *place)


@dataclass(frozen=True)
class Trial:
    """A function with wrong summaries: of siblings, and of its own after a change; none or more of each.

    The summaries are single sentences that are cleaned already, where "this.done()" is "this . done ( )".
    They are scored by a reader that does not divide them.
    """

    function: Function
    sibling: list[str]
    changed: list[str]


def make_trials(
    file: Path, split: str | None, seed: int, most: int | None = None, draws: int = 1
) -> list[Trial]:
    """Choose functions at random, by default all, and give them wrong summaries: `draws` of siblings,
    and their own after a change.

    Siblings with the same name, or summaries with the same content words, do the same.
    """
    functions, words = list(read_functions(file, split)), lexicon.load()
    files: dict[tuple[str, str], list[Function]] = defaultdict(list)
    for function in functions:
        files[function.repository, function.path].append(function)
    # Siblings have a generator of their own, so that their number changes nothing else.
    random, of_siblings, trials = np.random.default_rng(seed), np.random.default_rng((seed, 1)), []
    for number in random.permutation(len(functions))[:most]:
        function = functions[number]
        content = extract_content_words(function.summary, words)
        siblings = [
            other.summary
            for other in files[function.repository, function.path]
            if other.name != function.name and extract_content_words(other.summary, words) != content
        ]
        made = change(function.summary, words, random)
        drawn = [siblings[i] for i in of_siblings.integers(len(siblings), size=draws)] if siblings else []
        trials.append(Trial(function, drawn, [made[1]] if made else []))
    if not any(trial.sibling for trial in trials) or not any(trial.changed for trial in trials):
        raise InputError(f"{file}: no functions with siblings, or whose summaries can be changed, in {split}")
    return trials


Scored = dict[str, tuple[FitScores, FitScores]]  # of the true and the wrong summaries, by the kind of these


def score_trials(reader: CodeReader, trials: Sequence[Trial]) -> Scored:
    """Score the true and the wrong summaries of trials, by the kind of the wrong ones."""
    scored = {}
    for name in ("sibling", "changed"):
        pairs = [(trial.function, wrong) for trial in trials for wrong in getattr(trial, name)]
        functions = list(dict.fromkeys(function for function, _ in pairs))
        number = {function: i for i, function in enumerate(functions)}
        true = _score(reader, [(function, function.summary) for function in functions])
        rows = np.array([number[function] for function, _ in pairs])
        fits = None if true.fits is None else true.fits[rows]
        true = replace(true, values=true.values[rows], cosines=true.cosines[rows], fits=fits)
        scored[name] = true, _score(reader, pairs)
    return scored


def aucs(scored: Scored) -> dict[str, float]:
    """Compute the AUCs on trials, and the shares of functions whose own summary scores higher (`higher_…`).

    Without a model that reads code, only those of the score.
    """
    figures: dict[str, float] = {}
    for name, (true, wrong) in scored.items():
        sides = [("", true.values, wrong.values)]
        if true.fits is not None and wrong.fits is not None:
            sides.append(("fits_", true.fits, wrong.fits))
        for prefix, right, other in sides:
            figures[f"{prefix}auc_{name}"] = area_under_roc(right, other)
            figures[f"{prefix}higher_{name}"] = float((right > other).mean())
    return figures


def calibrate(scored: Scored, info: MeaningInfo) -> MeaningInfo:
    """Calibrate `fits` on trials whose `fits` are those of an uncalibrated head; both kinds count alike."""
    logits, labels, smallest = [], [], min(len(true.values) for true, _ in scored.values())
    for scores in scored.values():
        for label, side in zip((1.0, 0.0), scores, strict=True):
            logits.append(_logits(side)[:smallest])
            labels.append(np.full(smallest, label))
    slope, intercept = fit_platt(np.concatenate(logits), np.concatenate(labels))
    return replace(
        info, slope=slope, intercept=intercept, fitted_on=f"{4 * smallest:,} summaries of functions"
    )


def _logits(scores: FitScores) -> Floats:
    assert scores.fits is not None
    values = scores.fits.clip(1e-12, 1 - 1e-12)
    return np.log(values / (1 - values))


def _score(reader: CodeReader, pairs: Sequence[tuple[Function, str]]) -> FitScores:
    return reader.score([CodePair(one.code, summary, one.language) for one, summary in pairs])


def measure_changes_of_code(reader: CodeReader, trials: Sequence[Trial]) -> dict[str, float]:
    """Measure how scores react to rewritten code and to mutants, by `simllm.evaluation.code_robustness`."""
    functions = [trial.function for trial in trials]
    examples = [Example(one.summary, None, one.code, one.language) for one in functions]
    edits, figures = make_code_edits(examples, seed=_SEED), dict[str, float]()
    scores = reader.score(code_pairs(edits.examples))
    for prefix, values in (("", scores.values), ("fits_", scores.fits)):
        if values is None:
            continue
        robustness = measure_code_robustness(values, edits)
        figures[f"{prefix}move"] = robustness.value(REWRITING, "move")
        figures[f"{prefix}mutants_fall"] = robustness.value(MUTANT, "falls")
        figures[f"{prefix}mutants_drop"] = robustness.value(MUTANT, "drop")
    return figures


def find_unsupported(reader: CodeReader, trials: Sequence[Trial]) -> dict[str, float]:
    """Return the `fits` below which a statement counts as unsupported, and the share of those that do.

    A statement is a clause of a summary. Those of other summaries come from half the list away.
    """
    functions = [trial.function for trial in trials]
    fits = []
    for shift in (0, len(functions) // 2):
        pairs = [
            CodePair(function.code, text, function.language)
            for function, other in zip(functions, functions[shift:] + functions[:shift], strict=True)
            for text in divide(other.written).texts
        ]
        found = reader.score(pairs).fits
        if found is None:
            return {}
        fits.append(found)
    limit = float(np.quantile(fits[0], _FALSE_ALARMS))
    return {"unsupported": limit, "unsupported_other": float((fits[1] < limit).mean())}


@dataclass(frozen=True)
class RatedCode:
    """n rated summaries with the code that they describe, and their references."""

    name: str
    pairs: list[CodePair]
    references: list[str]
    ratings: Floats

    @classmethod
    def load(cls, file: Path) -> RatedCode:
        """Read JSON lines with `code`, `language`, `candidate`, `reference` and `rating`."""
        pairs, references, ratings = [], [], []
        for where, row in reading.objects(file):
            code, candidate, reference = (
                reading.text_under(row, name, where) for name in ("code", "candidate", "reference")
            )
            pairs.append(CodePair(code, candidate, row.get("language")))
            references.append(reference)
            rating = row.get("rating")
            if not isinstance(rating, int | float):
                raise InputError(f'{where}: expected a number under "rating"')
            ratings.append(float(rating))
        return cls(file.stem, pairs, references, np.array(ratings))

    def features(self, metric: SimLLM) -> Floats:
        """Return (n, 3) scores against the reference, cosines with the code, and `fits` (0 without it)."""
        by_code = metric.code_reader.score(self.pairs)
        by_reference = metric.score([pair.summary for pair in self.pairs], self.references).values
        fits = np.zeros(len(self.pairs)) if by_code.fits is None else by_code.fits
        return np.stack([by_reference, by_code.cosines, fits], axis=1)


_STEPS = np.linspace(0, 1, 21)


def fit_weights(
    sets: Sequence[tuple[Floats, Floats]], trials: Sequence[tuple[Floats, Floats]] = ()
) -> Floats:
    """Fit the (3,) weights of reference, cosine and `fits`: at least 0, with sum 1, the first below 1.

    The share of `fits` beside the cosine has the highest sum of the mean correlation with the ratings, and of
    the mean 2 * AUC - 1 on the trials. Then the weight of the reference has the highest mean correlation.

    Args:
        sets: The (n, 3) features and (n,) ratings of each set. Sets count by their size, because the
            correlation over a few dozen ratings is known to .1 or so.
        trials: For each kind of wrong summaries, (n, 2) cosines and `fits` of the true and the wrong ones.
    """

    def agreement(weights: Floats) -> float:
        correlations = [_spearman(features @ weights, ratings) for features, ratings in sets]
        return float(np.average(correlations, weights=[len(ratings) for _, ratings in sets]))

    def code_weights(share: float) -> Floats:
        return np.array([0, 1 - share, share])

    def quality(share: float) -> float:
        weights = code_weights(share)
        found = [area_under_roc(true @ weights[1:], wrong @ weights[1:]) for true, wrong in trials]
        return agreement(weights) + (2 * float(np.mean(found)) - 1 if found else 0.0)

    code = code_weights(max(_STEPS, key=quality))
    candidates = [np.array([weight, 0, 0]) + (1 - weight) * code for weight in _STEPS[:-1]]
    return max(candidates, key=agreement).round(4)


def _spearman(scores: Floats, ratings: Floats) -> float:
    return float(np.corrcoef(rankdata(scores), rankdata(ratings))[0, 1]) if np.ptp(scores) else 0.0


def cross_validated(
    rated: Sequence[RatedCode],
    features: Sequence[Floats],
    trials: Sequence[tuple[Floats, Floats]] = (),
) -> list[tuple[float, float]]:
    """Return for each set the correlations of scores whose weights were fitted to other rated functions.

    They are those of the scores against code, and against both. `trials` as in `fit_weights`.
    """
    folds = []
    for one in rated:
        codes = list(dict.fromkeys(pair.code for pair in one.pairs))
        fold_of = dict(zip(codes, np.random.default_rng(1).permutation(len(codes)) % _FOLDS, strict=True))
        folds.append(np.array([fold_of[pair.code] for pair in one.pairs]))
    scores = [np.zeros((len(one.ratings), 2)) for one in rated]
    for fold in range(_FOLDS):
        kept = [own != fold for own in folds]
        both = fit_weights(
            [(x[keep], one.ratings[keep]) for x, one, keep in zip(features, rated, kept, strict=True)], trials
        )
        code = np.array([0, *both[1:]]) / both[1:].sum()
        for own, x, keep in zip(scores, features, kept, strict=True):
            own[~keep] = x[~keep] @ np.stack([code, both], axis=1)
    return [
        (_spearman(own[:, 0], one.ratings), _spearman(own[:, 1], one.ratings))
        for own, one in zip(scores, rated, strict=True)
    ]


_OPENING = """# The code reader of simllm

Reads the code of a function, and tells how well a summary describes it: by the cosine of two embeddings, and
by `fits`, a calibrated probability from a small network that reads both. It belongs to one model of
summaries, and `simllm score --against code` uses it."""
_RATED = """Spearman's correlation with the ratings of people. The weights of the scores against code and
against both are fitted to these sets, so that their figures are cross-validated by function."""
_WITH_DEV = """The weights are also fitted to functions of the dev split, so that the score tells true
summaries from wrong ones."""
_RATED_COLUMNS = {"reference": "reference", "code": "code", "fits": "`fits` alone", "both": "both"}
# What the figures of functions mean, for the score and for `fits`.
_OF_FUNCTIONS = {
    "auc_sibling": "true summaries against those of functions of the file with other names: AUC",
    "higher_sibling": "the same: share of such pairs in which the true summary is higher",
    "auc_changed": "true summaries against summaries with another meaning: AUC",
    "higher_changed": "the same: share of functions whose own summary is higher",
    "move": "rewritten code that does the same: mean change, in standard deviations",
    "mutants_fall": "code with one mistake: share that is lower; ties count half",
    "mutants_drop": "the same: mean fall, in standard deviations",
}
_OF_TRAINING = {
    "objective": "objective", "functions": "functions", "updates": "updates",
    "updates_before": "updates of the code reader that it started from",
    "start_share": "share of weights from other trainings", "starts": "their models (SHA-256)",
    "tokens": "tokens", "seconds": "seconds of training", "hardware": "hardware", "date": "date",
    "git_revision": "revision of simllm", "dev_criterion": "criterion on the dev split, higher is better",
}  # fmt: skip


def make_card(facts: Mapping[str, Any], with_dev: bool = False) -> str:
    """Write the model card, in Markdown, from facts about the training and, if measured, the figures.

    `with_dev` tells whether the weights are also fitted to functions of the dev split.
    """
    parts = [_OPENING]
    sets = [name.removesuffix("_both") for name in facts if name.endswith("_both")]
    if sets:
        rows = [
            [SETS.get(f"rated/{one}", one), *(decimal(facts[f"{one}_{column}"]) for column in _RATED_COLUMNS)]
            for one in sets
        ]
        about = f"{_RATED} {_WITH_DEV}" if with_dev else _RATED
        parts += ["## How good it is", about, markdown_table(["ratings", *_RATED_COLUMNS.values()], rows)]
    if "auc_sibling" in facts:
        figures = [
            [label, *(decimal(facts[key]) if key in facts else "n/a" for key in (name, f"fits_{name}"))]
            for name, label in _OF_FUNCTIONS.items()
        ]
        parts += [
            "On functions of repositories that were not trained on:",
            markdown_table(["figure", "score", "`fits`"], figures),
        ]
    if "unsupported" in facts:
        limit, found = decimal(facts["unsupported"]), facts["unsupported_other"]
        parts.append(
            f"A statement with `fits` below {limit} counts as unsupported by the code: {_FALSE_ALARMS:.0%} "
            f"of the statements of true summaries, and {found:.0%} of those about other functions."
        )
    training = [[label, _shown(facts[name])] for name, label in _OF_TRAINING.items() if name in facts]
    return "\n\n".join([*parts, "## How it was made", markdown_table(["", ""], training)]) + "\n"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.code_reader.measure", __doc__)
    parser.add_argument("--pairs", type=Path, required=True, help="output of train.code_reader.pairs")
    parser.add_argument("--rated", type=Path, nargs="+", required=True, help="rated summaries with code")
    parser.add_argument("--model", type=Path, help="model that reads code (default: the one with simllm)")
    parser.add_argument("--summaries", type=Path, help="model that embeds the summaries (default: as above)")
    parser.add_argument(
        "--dev", type=Path, metavar="PAIRS", help="fit weights and `fits` to the dev split of these, too"
    )
    parser.add_argument("--shared", action="store_true", help="measure without a model that reads code")
    parser.add_argument(
        "--release", type=Path, metavar="FOLDER", help="write --model there, with the weights"
    )
    return run_command(parser, _measure)


def _measure(
    pairs: Path,
    rated: list[Path],
    model: Path | None,
    summaries: Path | None,
    dev: Path | None,
    shared: bool,
    release: Path | None,
) -> None:
    if release and (shared or not model):
        raise InputError("--release needs --model, and does not go with --shared")
    metric = SimLLM(summaries, mode="fast")
    code = metric.code_reader.model if not model else code_model.load(model, metric.model)
    if model and not code:
        raise InputError(f"{model}: belongs to another model of summaries; name it with --summaries")
    code = None if shared else code
    if dev and not code:
        raise InputError("--dev needs a model that reads code: name it with --model, without --shared")
    if release:
        OutputFolder(release, code_model.CONTENT).check()
    sets, unseen = [RatedCode.load(file) for file in rated], make_trials(pairs, None, _SEED, draws=_SIBLINGS)
    trials: list[tuple[Floats, Floats]] = []
    if code and dev:
        own = make_trials(dev, "dev", _SEED, most=_DEV_TRIALS)
        if common := {one.function.repository for one in own} & {one.function.repository for one in unseen}:
            raise InputError(f"--dev {dev}: has repositories of --pairs: {list_some(sorted(common), 3)}")
        code, trials = fit_to_functions(metric, code, own)
    metric.code_reader = _reader(metric, code)
    features = [one.features(metric) for one in sets]
    weights = fit_weights([(x, one.ratings) for x, one in zip(features, sets, strict=True)], trials)
    figures: dict[str, float] = {}
    validated = cross_validated(sets, features, trials)
    for one, x, (by_code, both) in zip(sets, features, validated, strict=True):
        figures[f"{one.name}_reference"] = _spearman(x[:, 0], one.ratings)
        figures[f"{one.name}_code"] = by_code
        figures[f"{one.name}_fits"] = _spearman(x[:, 2], one.ratings)
        figures[f"{one.name}_both"] = both
    if code:
        fitted_on = ", ".join([*(one.name for one in sets), *(["the dev split"] if dev else [])])
        info = replace(code.info, both=tuple(weights.tolist()), both_fitted_on=fitted_on)
        metric.code_reader = _reader(metric, replace(code, info=info))
    whole = _reader(metric, metric.code_reader.model, divides=False)
    figures |= aucs(score_trials(whole, unseen))
    figures |= find_unsupported(whole, unseen)
    figures |= measure_changes_of_code(whole, unseen)
    figures = {name: round(value, 4) for name, value in figures.items()}
    print(json.dumps(figures, indent=1))
    print(f"weights of reference, cosine and fits: {weights.tolist()}")
    if release and (code := metric.code_reader.model):
        facts = shorten_paths({**code.info.provenance, **figures})
        info = replace(code.info, provenance=facts, unsupported=figures["unsupported"])
        code_model.save(release, code, info, make_card(facts, with_dev=bool(dev)))
        write_golden_scores(release, summaries)


def fit_to_functions(
    metric: SimLLM, code: CodeModel, trials: Sequence[Trial]
) -> tuple[CodeModel, list[tuple[Floats, Floats]]]:
    """Calibrate `fits` on trials; also return cosines and calibrated `fits` as `fit_weights` takes them."""
    uncalibrated = replace(code.info.fits, slope=1.0, intercept=0.0)
    raw = replace(code, info=replace(code.info, fits=uncalibrated))
    scored = score_trials(_reader(metric, raw, divides=False), trials)
    fits = calibrate(scored, uncalibrated)

    def features(side: FitScores) -> Floats:
        return np.stack([side.cosines, fits.probabilities(_logits(side), side.cosines)], axis=1)

    found = [(features(true), features(wrong)) for true, wrong in scored.values()]
    return replace(code, info=replace(code.info, fits=fits)), found


def _reader(metric: SimLLM, code: CodeModel | None, divides: bool = True) -> CodeReader:
    return CodeReader(metric.model, metric.engine, metric.code_reader.pooling, code=code, divides=divides)


def write_golden_scores(folder: Path, summaries: Path | None) -> None:
    """Write the golden scores of a model that reads code, as it is stored: in float16."""
    metric = SimLLM(summaries, mode="plain", device="cpu")
    code = code_model.load(folder, metric.model)
    golden_scores.write_golden_scores(folder, _reader(metric, code))


if __name__ == "__main__":
    sys.exit(main())
