r"""Adapt the included model, or another one, to your own comments; the result is a model folder.

    python -m train.adapt my/repositories --out runs/adapted
    python -m train.adapt comments.txt more/*.jsonl --out runs/adapted --set learning_rate=2e-5
    simllm score "adds two lists" "combines 2 arrays" --model runs/adapted/model

A SOURCE is one of those of `python -m train.corpus build`: a folder of source trees, a text file with one
comment on each line, a file of JSON lines. A fifth of the comments is held out. The encoder and the meaning
head are trained together on the others (configs/adapt.yaml). A half of the held-out comments chooses the best
model. The other half calibrates it, and tells what has changed: the command prints figures before and after.

To resume a command that was stopped or killed, rerun it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from simllm.analysis import golden_scores
from simllm.errors import InputError
from simllm.io import output_file, reading, tables
from simllm.io.output_folder import OutputFolder
from simllm.metric import SimLLM
from simllm.model import saved_model
from simllm.model.saved_model import SavedModel
from simllm.model.torch_engine import has_fast_bfloat16
from simllm.perturb.summaries import lexicon
from simllm.perturb.summaries.meaning_changes import change
from simllm.perturb.summaries.rewording import reword
from train.contrastive.batches import drop_words
from train.contrastive.config import ContrastiveConfig
from train.contrastive.meaning_pairs import MeaningPair, make_triples, read_items
from train.corpus import build
from train.corpus.config import COMMENTS, PAGE, CorpusConfig
from train.corpus.decontaminate import ExcludedTexts
from train.release.calibrate import calibrate, calibrate_meaning, meaning_test_pairs, score_random_pairs
from train.release.card import markdown_table
from train.release.folder import save_rounded
from train.release.measure import measure_retrieval, read_summaries_and_descriptions
from train.runtime import config as training_config
from train.runtime import signals
from train.runtime.command import make_parser, run_command
from train.runtime.config import MODEL
from train.runtime.dev_criterion import DevCriterion
from train.runtime.log import print_progress
from train.runtime.provenance import training_card

CONTENT = "an adaptation"  # of the folder, for its marker
_FEWEST, _FEW = 100, 1000  # comments; below the second number, the figures are uncertain
_TEST_SHARE = 0.2
_EPOCHS, _UPDATES = 2, (100, 2000)  # over the comments; fewest and most updates
_RANDOM_PAIRS, _SEARCHED = 2000, 2000  # pairs; held-out comments among which one is to be found
_DROPPED = 0.4  # share of the words of a rewording; whole rewordings are too easy to find
_FEWEST_DESCRIPTIONS = 20
_GRADED = 2000  # comments in pairs with a grade
_LOST = 0.02  # a larger loss in an included check is a warning
_SEED = 1

# The reported figures; those from `DevCriterion` have its names.
_OWN = {
    "retrieval": "shortened rewordings that find their comment",
    "descriptions": "summaries that find the rest of the comment",
    "edits": "rewording above a change, by score",
    "same_edits": "rewording above a change, by same",
    "random_mean": "mean score of random pairs",
    "random_same": "random pairs with same above .5",
}
_INCLUDED = {
    "items": "meaning items, by score",
    "same_items": "meaning items, by same",
    "contrast_balanced": "contrast set, balanced, by score",
    "contrast_adversarial": "contrast set, adversarial, by score",
    "same_contrast_balanced": "contrast set, balanced, by same",
    "same_contrast_adversarial": "contrast set, adversarial, by same",
}


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.adapt", __doc__)
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="your comments: path or glob pattern")
    parser.add_argument("--out", type=Path, required=True, help="folder to write; the model is OUT/model")
    parser.add_argument(
        "--model", type=Path, default=Path("checkpoints/default"),
        help="model folder to start from (%(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--config", type=Path, default=Path("configs/adapt.yaml"), help="settings (%(default)s)"
    )
    parser.add_argument(
        "--set", nargs="+", default=[], dest="overrides", metavar="key=value", help="such as updates=100"
    )
    parser.add_argument(
        "--exclude", nargs="+", default=[], metavar="RATINGS", help="rated files whose texts are left out"
    )
    return run_command(parser, adapt)


def adapt(
    sources: list[str], out: Path, model: Path, config: Path, overrides: list[str], exclude: list[str]
) -> None:
    """Build the corpus, train, write the model folder `out/model`, and print what has changed."""
    for source in sources:
        if Path(source).suffix.lower() in (".csv", ".tsv"):
            raise InputError(f"{source}: expected comments, one on each line, or JSON lines; not a table")
    start = saved_model.load(model)
    folder = OutputFolder(out, CONTENT)
    folder.check()
    folder.check_apart([model])
    # Before the corpus is built, so that a wrong key is told at once.
    _load(config, overrides, {})
    folder.own()
    corpus = out / "corpus"
    print_progress("corpus")
    counts = build.build(CorpusConfig(tuple(sources), tuple(exclude), _TEST_SHARE), corpus)["counts"]
    number = counts["train"] + counts["test"]
    if number < _FEWEST:
        raise InputError(
            f"{number} different comments are too few to adapt to; {_FEWEST} or more are needed "
            f"({corpus / PAGE} tells what was left out)"
        )
    dev, test = _halve(corpus / build.TEST, out / "held-out")
    paths = _paths(start, model, out, dev)
    paths |= _schedule(_load(config, overrides, paths), counts["train"])
    command = [f"{key}={json.dumps(value)}" for key, value in paths.items()]
    status = signals.run_forwarding_signals(
        [sys.executable, "-m", "train.contrastive", str(config), *command, *overrides]
    )
    if status:  # the training has said why
        raise signals.Stopped("", status)
    items = _load(config, overrides, paths).dev_items
    report = _write_model(out, start, model, test, items, number)
    print(f"{'figures on held-out comments, and on included checks':53}  before   after")
    for name, description in {**_OWN, **_INCLUDED}.items():
        if name in report["before"]:
            both = (f"{report[side][name]:7.3f}" for side in ("before", "after"))
            print(f"{description:53}  {'  '.join(both)}")
    for warning in report["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)
    print(f"the model is in {tables.printable(out / MODEL)}")


def _load(config: Path, overrides: list[str], values: dict[str, Any]) -> ContrastiveConfig:
    given = [f"{key}={json.dumps(value)}" for key, value in values.items()]
    return training_config.load(ContrastiveConfig, config, [*given, *overrides])


def _halve(held_out: Path, folder: Path) -> tuple[Path, Path]:
    """Write every other held-out comment to `dev.txt`, the others to `test.txt`, and return both files."""
    texts = [text for _, text in reading.read_lines(held_out)]
    written = OutputFolder(folder, "held-out comments")
    written.own()
    for name, half in (("dev.txt", texts[::2]), ("test.txt", texts[1::2])):
        written.write(name, "".join(f"{text}\n" for text in half))
    return folder / "dev.txt", folder / "test.txt"


def _paths(start: SavedModel, model: Path, out: Path, dev: Path) -> dict[str, Any]:
    """Return the settings of the training that name files, and the shape of the meaning head."""
    train = str(out / "corpus" / build.TRAIN)
    head = {
        "meaning.sources.0.source": train,
        "meaning.head": start.info.meaning and asdict(start.info.meaning.head) | {"graded": False},
    }
    return {
        "model": str(model),
        "out": str(out / "training"),
        "positives.0.source": train,
        "dev_comments": str(dev),
        **(head if start.head else {"meaning": None}),
    }


def _grade(start: SimLLM, comments: Path) -> list[MeaningPair]:
    """Make pairs of comments with the graded similarity of the start model.

    Nobody has graded the user's comments: the adapted head keeps its graded output by imitating the old one.
    """
    texts = [text for _, text in reading.read_lines(comments)][:_GRADED]
    words, random = lexicon.load(), np.random.default_rng(_SEED)
    pairs = []
    for text, other in zip(texts, random.permutation(len(texts)), strict=True):
        changed = change(text, words, random)
        variants = (reword(text, words, random), *([changed[1]] if changed else []), texts[other])
        pairs += [(text, variant) for variant in variants]
    grades = start.score([b for _, b in pairs], [a for a, _ in pairs]).on("graded")
    return [MeaningPair(a, b, grade) for (a, b), grade in zip(pairs, grades.tolist(), strict=True)]


def _schedule(config: ContrastiveConfig, comments: int) -> dict[str, Any]:
    """Return the settings that depend on the number of training comments, and on the machine."""
    own = config.positives[0].share / sum(source.share for source in config.positives) * config.pairs
    updates = min(max(round(_EPOCHS * comments / own), _UPDATES[0]), _UPDATES[1])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return {
        "updates": updates,
        "warmup_updates": updates // 20,
        "evaluate_every": -(-updates // 4),
        "precision": "bf16" if has_fast_bfloat16(device) else "fp32",
    }


def _write_model(
    out: Path, start: SavedModel, model: Path, test: Path, items: str | None, number: int
) -> dict[str, Any]:
    """Round, calibrate and measure the trained model, and write its folder; return the report."""
    trained = saved_model.load(out / "training" / MODEL)
    with OutputFolder(out / MODEL, saved_model.CONTENT).replacing() as candidate:
        print_progress("calibration")
        is_graded = trained.head and start.head_config and start.head_config.graded
        graded = _grade(SimLLM(model, long="whole"), out / "corpus" / build.TRAIN) if is_graded else []
        save_rounded(trained, candidate, graded=graded)
        calibrate(candidate, test)
        if trained.head:
            calibrate_meaning(candidate, meaning_test_pairs(test, None, items), test, test.name)
        golden_scores.write_golden_scores(candidate)
        print_progress("figures before and after")
        figures = _Figures(test, out / "corpus" / COMMENTS, items)
        report = {
            "start": start.hash,
            "comments": number,
            "before": figures(SimLLM(model)),
            "after": figures(SimLLM(candidate)),
        }
        report["warnings"] = _warnings(report)
        output_file.write(candidate / "adaptation.json", json.dumps(report, indent=1) + "\n")
        output_file.write(candidate / "README.md", _card(trained, report))
    return report


class _Figures:
    """Figures of a model, before and after: on held-out comments, and on the included checks."""

    def __init__(self, test: Path, comments: Path, items: str | None) -> None:
        self.texts = list(dict.fromkeys(text for _, text in reading.read_lines(test)))
        nothing_held_out = lexicon.load().held_out_words
        triples = items and make_triples(read_items(items, "test", ExcludedTexts([]), nothing_held_out))
        self.criterion = DevCriterion([], str(test), _SEED, triples or None)
        words, random = lexicon.load(), np.random.default_rng(_SEED)
        self.searches = {
            "retrieval": [
                (drop_words(reword(text, words, random), _DROPPED, random), text)
                for text in self.texts[:_SEARCHED]
            ]
        }
        described = read_summaries_and_descriptions(comments, ("test",)).values()
        pairs = [pair for pairs in described for pair in pairs][:_SEARCHED]
        if len(pairs) >= _FEWEST_DESCRIPTIONS:
            self.searches["descriptions"] = pairs

    def __call__(self, metric: SimLLM) -> dict[str, float]:
        scores = score_random_pairs(metric, self.texts, _RANDOM_PAIRS)
        values = {
            **{name: measure_retrieval(metric, pairs)["first"] for name, pairs in self.searches.items()},
            "random_mean": scores.mean,
            **self.criterion(metric)[1],
        }
        if scores.same is not None:
            values["random_same"] = float((scores.same > 0.5).mean())
        return {name: round(value, 4) for name, value in values.items()}


def _warnings(report: dict[str, Any]) -> list[str]:
    """Say which figures make the adapted model doubtful."""
    before, after, found = report["before"], report["after"], []
    if report["comments"] < _FEW:
        found.append(
            f"{report['comments']} comments are few: percentiles and same are calibrated on a tenth of them, "
            "and the figures on them are uncertain"
        )
    for name, description in _INCLUDED.items():
        if name in after and after[name] < before.get(name, 0) - _LOST:
            change = f"{before[name]:.3f} before, {after[name]:.3f} after"
            found.append(f"{description}: {change}; the model has forgotten")
    own = ("retrieval", "descriptions", "edits", "same_edits")
    if not any(after[name] > before[name] for name in own if name in after and name in before):
        found.append("the model is not better on your comments than before; use the model it started from")
    return found


def _card(model: SavedModel, report: dict[str, Any]) -> str:
    """Return the model card."""
    rows = [
        [description, *(f"{report[side][name]:.3f}" for side in ("before", "after"))]
        for name, description in {**_OWN, **_INCLUDED}.items()
        if name in report["after"] and name in report["before"]
    ]
    warnings = "".join(f"\n- Warning: {warning}." for warning in report["warnings"])
    return (
        training_card("Adapted to comments of its user", model.info.provenance)
        + "\n## What the adaptation changed\n\nOn held-out comments that neither trained nor chose the "
        "model, and on the checks that are included in simllm (meaning items, contrast set):\n\n"
        + markdown_table(["", "before", "after"], rows)
        + f"\n{warnings}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
