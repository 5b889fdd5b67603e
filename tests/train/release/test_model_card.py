"""The commands of a release: figures, model card and model folder."""

import json
import shutil
from pathlib import Path
from unittest import mock

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file
from sklearn.metrics import roc_auc_score

from simllm import SimLLM
from simllm.analysis import golden_scores
from simllm.io.files import objects
from simllm.model import ppmi_vectors, saved_model
from simllm.perturb.summaries import lexicon
from tests.train.training_processes import content
from train.contrastive.meaning_head_pairs import SAME
from train.contrastive.meaning_items import read_items
from train.corpus.decontaminate import ExcludedTexts
from train.release import __main__ as release_
from train.release import calibrate, measure_meaning, model_card
from train.release import measure as measure_
from train.release.calibrate import meaning_test_pairs
from train.release.measure import MeasureConfig, measure
from train.release.released_weights import postprocess
from train.runtime.config_file import load


def test_measures_a_model(call, model_folder, sets):
    done = call(measure_, model_folder, "--config", sets)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["signature"] == SimLLM(model_folder).signature
    agreement = figures["spearman"]["set/rated"]
    assert agreement["pairs"] == 60
    assert all(
        agreement[name]["low"] <= agreement[name]["rho"] <= agreement[name]["high"]
        for name in ("simllm", "jaccard")
    )
    assert (
        figures["contrast"]["jaccard"]["adversarial"]["all"]
        < 0.05
        < figures["contrast"]["simllm"]["balanced"]["all"]
    )
    assert set(figures["languages"]) == {"python", "go"}
    for found in figures["languages"].values():
        assert found["pairs"] == 20
        assert found["first"] <= found["mrr"] <= 1
    unrelated = figures["random_pairs"]
    assert -1 <= unrelated["p5"] <= unrelated["median"] <= unrelated["p95"] <= 1


def test_the_model_is_loaded_and_the_word_vectors_are_built_once(model_folder, sets, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    config = yaml.safe_load(sets.read_text())
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("".join(f"{row['reference']}\n" for _, row in objects(Path(config["rated"][0]))))
    (second := tmp_path / "second" / "rated.jsonl").parent.mkdir()
    lines = Path(config["rated"][0]).read_text().splitlines(keepends=True)
    second.write_text("".join(lines[:30]))
    rated = [*config["rated"], str(second)]
    measured = MeasureConfig(**config | {"rated": rated, "baselines": [f"word-vectors={corpus}"]})
    with (
        mock.patch.object(saved_model, "load", wraps=saved_model.load) as load_,
        mock.patch.object(ppmi_vectors, "ppmi_vectors", wraps=ppmi_vectors.ppmi_vectors) as vectors,
    ):
        figures = measure(model_folder, measured)
    assert figures["spearman"]["second/rated"].keys() == {"pairs", "simllm", "word-vectors"}
    assert (load_.call_count, vectors.call_count) == (1, 1)


def test_missing_set_is_an_error(call, model_folder, sets, tmp_path):
    config = yaml.safe_load(sets.read_text()) | {"rated": [str(tmp_path / "none.jsonl")]}
    sets.write_text(yaml.safe_dump(config))
    done = call(measure_, model_folder, "--config", sets)
    assert done.returncode == 2
    assert "none.jsonl: cannot be read" in done.stderr.splitlines()[-1]


@pytest.fixture
def runs(model_folder, tmp_path):
    """Write two finished runs with different weights."""
    torch.manual_seed(0)
    for number, name in enumerate(("run", "other")):
        shutil.copytree(model_folder, tmp_path / name / "model")
        weights = tmp_path / name / "model" / "model.safetensors"
        moved = {key: x + number * 0.1 * torch.randn_like(x) for key, x in load_file(weights).items()}
        save_file(moved, weights, metadata={"format": "pt"})
        info = json.loads((tmp_path / name / "model" / "simllm.json").read_text())
        info["provenance"] = {"objective": "none", "updates": 0, "config": {"seed": number}}
        info["provenance"]["dev_criterion"] = number
        (tmp_path / name / "model" / "simllm.json").write_text(json.dumps(info))
        (tmp_path / name / "log.jsonl").write_text("{}\n")
    (tmp_path / "notes.md").write_text("## Notes\n\nOf mine.\n")
    return tmp_path / "run", tmp_path / "other"


@pytest.fixture
def release(call, sets, tmp_path):
    """Return a function that releases finished runs into a folder."""
    notes = tmp_path / "notes.md"
    return lambda runs, out, *more: call(
        release_, *runs, "--out", out, "--notes", notes, "--config", sets, *more
    )


@pytest.mark.filterwarnings("ignore:.*texts cut at")
def test_release_is_half_as_large_and_has_a_card(release, runs, tmp_path):
    run, out = runs[0], tmp_path / "released"
    (tmp_path / "comments.txt").write_text("".join(f"adds {i} lists\n" for i in range(60)))
    comments = tmp_path / "comments.txt"
    rated = yaml.safe_load((tmp_path / "measure.yaml").read_text())["rated"][0]
    done = release([run], out, "--centre", comments, "--calibrate", comments, rated, "--held-out", run)
    assert done.returncode == 0, done.stderr
    card = (out / "README.md").read_text()
    assert card.endswith("## Notes\n\nOf mine.\n")
    figures = json.loads((out / "figures.json").read_text())
    rho = figures["spearman"]["set/rated"]["simllm"]["rho"]
    assert f"| set/rated | 60 | {rho:.4f} [" in card
    assert "| kind | simllm, balanced | control, balanced | jaccard, balanced |" in card
    assert figures["held_out"]["contrast"].keys() == {"simllm", "jaccard"}
    before, after = ((folder / "model.safetensors").stat().st_size for folder in (run / "model", out))
    assert after < 0.6 * before
    centred = SimLLM(out).embed([f"adds {i} lists" for i in range(0, 60, 20)])
    assert abs(centred.mean(axis=0)).max() < 0.01 < abs(centred).max()
    assert (out / "log-1-run.jsonl").is_file()
    assert (
        SimLLM(out).calibration.fitted_on == "10,000 random pairs of comments.txt; 60 ratings of rated.jsonl"
    )
    assert golden_scores.largest_difference(SimLLM(out), out) < 1e-5


@pytest.fixture
def items(tmp_path):
    """Write 100 meaning items; about five are in each of the splits "dev" and "test"."""
    file = tmp_path / "items.jsonl"
    rows = [
        {
            "text": f"opens {i} files",
            "same": [f"open {i} files"],
            "different": [["related", f"adds {i} keys"]],
        }
        for i in range(100)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


def test_flags_are_counted_among_similar_texts(head_folder, items):
    metric = SimLLM(head_folder)
    test = read_items(items, "test", ExcludedTexts([]), lexicon.load().held_out_words)
    flags = measure_meaning.measure_flags(metric, test)
    scores = metric.score([item.same[1] for item in test], [item.same[0] for item in test])
    similar = scores.values >= 0.5
    found = flags["rewordings"]
    assert found["similar"] == similar.sum() > 0
    assert found["flagged"] == pytest.approx((scores.same[similar] < 0.3).mean())
    assert (
        f"it marks {found['flagged']:.0%} of {found['similar']} similar rewordings"
        in model_card._flags(flags)[0]
    )


def test_all_unseen_items_are_measured(head_folder, items):
    metric = SimLLM(head_folder)
    unseen = read_items(items, None, ExcludedTexts([]), lexicon.load().held_out_words)
    figures = measure_meaning.measure_unseen_items(metric, unseen)
    assert figures["items"] == 100
    texts = [f"opens {i} files" for i in range(100)]
    same = metric.score([f"open {i} files" for i in range(100)], texts).same
    changed = metric.score([f"adds {i} keys" for i in range(100)], texts).same
    labels = [1] * 100 + [0] * 100
    assert figures["auc"]["simllm-same"] == pytest.approx(roc_auc_score(labels, [*same, *changed]), abs=1e-3)
    assert (
        f"simllm-same {figures['auc']['simllm-same']:.3f}".replace("0.", ".")
        in model_card._unseen_items(figures)[0]
    )


def test_the_head_is_calibrated_on_labelled_pairs_and_items(call, head_folder, sets, items, tmp_path):
    model = shutil.copytree(head_folder, tmp_path / "model")
    comments, labelled = tmp_path / "comments.txt", tmp_path / "labelled.jsonl"
    comments.write_text("".join(f"opens the first file of {i} users\n" for i in range(60)))
    rows = [
        {"a": f"opens {i}", "b": f"{verb} {i}", "label": label, "set": "mine"}
        for i in range(40)
        for verb, label in (("open", "same"), ("closes", "different"))
    ]
    labelled.write_text("".join(json.dumps(row) + "\n" for row in rows))
    rated = yaml.safe_load(sets.read_text())["rated"][0]
    files = ("--comments", comments, "--ratings", rated, "--labelled", labelled, "--items", items)
    done = call(calibrate, model, *files)
    assert done.returncode == 0, done.stderr
    before, after = (SimLLM(folder).model.info.meaning for folder in (head_folder, model))
    assert (after.slope, after.intercept) != (before.slope, before.intercept)
    pairs = meaning_test_pairs(comments, labelled, items)
    assert after.fitted_on == f"{len(pairs[::2])} pairs, among them those of labelled.jsonl"
    assert sum(pair.label == SAME for pair in pairs) == len(pairs) / 2


def test_calibrating_the_head_needs_comments(release, runs, tmp_path):
    done = release(runs, tmp_path / "out", "--calibrate-meaning", tmp_path / "pairs.jsonl")
    assert done.returncode == 2
    assert done.stderr == "error: --calibrate-meaning needs the comments of --calibrate\n"


@pytest.mark.filterwarnings("ignore:.*texts cut at")
def test_earlier_release_is_kept_if_a_step_fails(release, runs, tmp_path):
    out = tmp_path / "released"
    assert release([runs[0]], out).returncode == 0
    before = content(out)
    (tmp_path / "few.txt").write_text("adds two lists\n")
    rated = tmp_path / "set" / "rated.jsonl"
    done = release([runs[1]], out, "--calibrate", tmp_path / "few.txt", rated)
    assert (done.returncode, done.stderr) == (2, "error: expected two or more different comments\n")
    assert content(out) == before
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*texts cut at")
def test_best_seed_is_released(release, runs, sets, tmp_path):
    run, other = runs
    done = release([run], tmp_path / "best", "--seeds", other)
    assert done.returncode == 0, done.stderr
    card, rho = (tmp_path / "best" / "README.md").read_text(), []
    for seed in runs:
        postprocess(seed, tmp_path / "one", [])
        figures = measure(tmp_path / "one", load(MeasureConfig, sets, []))
        rho.append(figures["spearman"]["set/rated"]["simllm"]["rho"])
    assert round(rho[0], 3) != round(rho[1], 3)
    assert "|  | seed 0 | seed 1 (released) | standard deviation |" in card
    deviation = abs(rho[0] - rho[1]) / 2**0.5
    assert f"| set/rated | {rho[0]:.3f} | {rho[1]:.3f} | {deviation:.3f} |" in card
    assert (tmp_path / "best" / "log-1-other.jsonl").is_file()
    assert saved_model.load(tmp_path / "best").info.provenance["config"]["seed"] == 1
