"""The released model folder: its content, its rounded and centred weights."""

import json
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from simllm import SimLLM
from simllm.analysis import golden_scores
from simllm.model import saved_model
from simllm.model.saved_model import BLOCK, are_blocks
from tests.train.training_processes import content, pretraining
from train.contrastive.grades import fit_grades
from train.contrastive.meaning_pairs import MeaningPair
from train.release import __main__ as release_
from train.release import refresh as refresh_
from train.release.card import decimal
from train.release.folder import centre_embeddings, postprocess
from train.release.measure import MeasureConfig, measure
from train.runtime.config import load

pytestmark = pytest.mark.slow


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
        out = f"/elsewhere/runs/{name}"
        settings = {"seed": number, "out": out, "compile": False, "overlap": None, "dev": []}
        info["provenance"] = {"objective": "none", "updates": 0, "config": settings}
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
    done = release([run], out, "--centre", comments, "--calibrate", comments, "--held-out", run)
    assert done.returncode == 0, done.stderr
    card = (out / "README.md").read_text()
    assert "## Notes\n\nOf mine.\n" in card
    (stage,) = json.loads((out / "training.json").read_text())
    assert stage["name"] == "run"
    # A short path, and neither null nor false.
    assert stage["config"] == {"seed": 0, "out": "run", "dev": []}
    assert saved_model.load(out).info.provenance["config"]["out"] == "run"
    figures = json.loads((out / "figures.json").read_text())
    rho = figures["spearman"]["set/rated"]["simllm"]["rho"]
    assert f"| set/rated | 60 | {decimal(rho)} [" in card
    assert "| kind | simllm, balanced | control, balanced | simllm, adversarial |" in card
    assert "| Jaccard | " in card
    assert figures["held_out"]["contrast"].keys() == {"simllm", "jaccard"}
    before, after = ((folder / "model.safetensors").stat().st_size for folder in (run / "model", out))
    assert after < 0.6 * before
    centred = SimLLM(out).embed([f"adds {i} lists" for i in range(0, 60, 20)])
    assert abs(centred.mean(axis=0)).max() < 0.01 < abs(centred).max()
    assert (out / "log-1-run.jsonl").is_file()
    assert SimLLM(out).calibration.fitted_on == "10,000 random pairs of comments.txt"
    assert golden_scores.largest_difference(SimLLM(out), out) < 1e-5


@pytest.mark.filterwarnings("ignore:.*texts cut at")
def test_refresh_brings_a_changed_folder_up_to_date(call, release, runs, sets, tmp_path):
    out, notes = tmp_path / "released", tmp_path / "notes.md"
    assert release([runs[0]], out, "--held-out", runs[0]).returncode == 0
    before = content(out)
    figures = json.loads((out / "figures.json").read_text())
    notes.write_text("# Mine\n\n## Notes\n\nOf others.\n")
    assert call(refresh_, out, "--notes", notes, "--card-only").returncode == 0
    changed = {name for name, text in content(out).items() if before.get(name) != text}
    assert {Path(name).name for name in changed} == {"README.md", ".simllm"}
    assert "\n# Mine\n" in (out / "README.md").read_text()
    # Other weights have other scores.
    shutil.copy(runs[1] / "model" / "model.safetensors", out / "model.safetensors")
    done = call(refresh_, out, "--notes", notes, "--config", sets, "--runs", runs[1])
    assert done.returncode == 0, done.stderr
    after = json.loads((out / "figures.json").read_text())
    assert after["signature"] == SimLLM(out).signature != figures["signature"]
    assert after["held_out"] == figures["held_out"]
    assert golden_scores.largest_difference(SimLLM(out), out) < 1e-5
    assert [stage["name"] for stage in json.loads((out / "training.json").read_text())] == ["other"]
    assert f"Model hash {SimLLM(out).model.hash}" in (out / "README.md").read_text()
    for damaged in ("[", '[{"name": "other"}]'):
        (out / "training.json").write_text(damaged)
        done = call(refresh_, out, "--notes", notes, "--card-only")
        expected = "expected a JSON list of objects with log, name"
        assert (done.returncode, done.stderr) == (2, f"error: {out / 'training.json'}: {expected}\n")


def test_stages_of_the_released_start_come_first(release, runs, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    assert release([runs[0]], first).returncode == 0
    (runs[1] / "log.jsonl").write_text('{"update": 2}\n')
    done = release([runs[1]], second, "--after", first)
    assert done.returncode == 0, done.stderr
    stages = json.loads((second / "training.json").read_text())
    assert [(stage["name"], stage["log"]) for stage in stages] == [
        ("run", "log-1-run.jsonl"),
        ("other", "log-2-other.jsonl"),
    ]
    assert (second / "log-1-run.jsonl").read_text() == "{}\n"
    assert (second / "log-2-other.jsonl").read_text() == '{"update": 2}\n'


def test_calibrating_the_head_needs_comments(release, runs, tmp_path):
    done = release(runs, tmp_path / "out", "--calibrate-meaning", tmp_path / "pairs.jsonl")
    assert done.returncode == 2
    assert done.stderr == "error: --calibrate-meaning needs the comments of --calibrate\n"


def test_missing_files_are_named_at_once_and_nothing_is_written(release, runs, sets, tmp_path):
    config = yaml.safe_load(sets.read_text())
    (tmp_path / "plain.jsonl").write_text('{"summary": "adds two lists", "split": "train"}\n')
    cases = [
        (
            {"rated": ["none.jsonl"], "items": "no/*.jsonl"},
            "no such file: rated: none.jsonl; items: no/*.jsonl (change or leave out these settings)",
        ),
        ({"rated": []}, f"{sets}: rated must name one or more files"),
        (
            {"comments": str(tmp_path / "plain.jsonl")},
            f"comments: {tmp_path}/plain.jsonl: fewer than two held-out comments",
        ),
    ]
    for changed, message in cases:
        sets.write_text(yaml.safe_dump(config | changed))
        done = release(runs, tmp_path / "out")
        assert (done.returncode, done.stderr) == (2, f"error: {message}\n")
    sets.write_text(yaml.safe_dump(config))
    done = release(runs, tmp_path / "out", "--calibrate", tmp_path / "none.txt")
    assert (done.returncode, done.stderr) == (2, f"error: {tmp_path}/none.txt: no such file\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("ignore:.*texts cut at")
def test_a_model_of_plain_summaries_is_released(run, release, comments, sets, tmp_path):
    """The corpus has no languages and no descriptions: the card does without the retrieval."""
    plain, trained = tmp_path / "plain.txt", tmp_path / "run"
    plain.write_text("".join(f"{' '.join(text.split())}\n" for text in comments[:300]))
    (tmp_path / "notes.md").write_text("Mine.\n")
    status, errors = run("train.pretrain", *pretraining(plain, trained, "updates=4", "warmup_updates=1"))
    assert status == 0, errors
    config = yaml.safe_load(sets.read_text()) | {"comments": str(trained / "corpus" / "comments.jsonl")}
    sets.write_text(yaml.safe_dump(config))
    texts = trained / "corpus"
    done = release(
        [trained], tmp_path / "out", "--centre", texts / "train.txt", "--calibrate", texts / "test.txt"
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "out" / "figures.json").read_text())
    assert figures["languages"] == {}
    assert "5th percentile" in (tmp_path / "out" / "README.md").read_text()
    released = SimLLM(tmp_path / "out")
    assert released.score(["adds two lists"], ["adds two lists"]).values == pytest.approx(1)
    assert golden_scores.largest_difference(released, tmp_path / "out") < 1e-5


@pytest.mark.filterwarnings("ignore:.*texts cut at")
def test_earlier_release_is_kept_if_a_step_fails(release, runs, tmp_path):
    out = tmp_path / "released"
    assert release([runs[0]], out).returncode == 0
    before = content(out)
    (tmp_path / "few.txt").write_text("adds two lists\n")
    done = release([runs[1]], out, "--calibrate", tmp_path / "few.txt")
    assert (done.returncode, done.stderr) == (2, "error: expected two or more different comments\n")
    assert content(out) == before
    assert not list(tmp_path.glob(".*"))


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


def test_matrices_are_rounded_to_8_bits_and_other_weights_stay(shifted_runs, tmp_path):
    postprocess(shifted_runs[1], tmp_path / "out", [])
    trained, released = (
        load_file(f / "model.safetensors") for f in (shifted_runs[1] / "model", tmp_path / "out")
    )
    for name, tensor in trained.items():
        if tensor.ndim < 2 or tensor.shape[1] % BLOCK:
            assert torch.equal(released[name], tensor.half()), name
        else:
            assert are_blocks(released[name].float().numpy(), 1), name
            torch.testing.assert_close(released[name].float(), tensor, atol=1e-2, rtol=0)


def test_centring_changes_no_probability_of_the_same_meaning(head_folder, tmp_path, comments):
    model = saved_model.load(head_folder)
    centre_embeddings(model, comments[:50])
    saved_model.save(tmp_path / "centred", model.encoder, model.tokenizer, model.info, "", head=model.head)
    before, after = (SimLLM(folder) for folder in (head_folder, tmp_path / "centred"))
    embeddings = [metric.embed(comments[:50]).mean(axis=0) for metric in (before, after)]
    assert np.abs(embeddings[1]).max() < 1e-5 < np.abs(embeddings[0]).max()
    pairs = comments[:20], comments[20:40]
    assert np.abs(after.score(*pairs).same - before.score(*pairs).same).max() < 1e-5


def test_grades_are_fitted_to_the_rounded_and_centred_model(head_folder, comments, tmp_path):
    shutil.copytree(head_folder, tmp_path / "run" / "model")
    texts = comments[:60]
    pairs = [MeaningPair(a, b, i % 5 / 4) for i, (a, b) in enumerate(pairwise(texts))]
    postprocess(tmp_path / "run", tmp_path / "plain", texts)
    postprocess(tmp_path / "run", tmp_path / "out", texts, pairs)
    plain, graded = saved_model.load(tmp_path / "plain"), saved_model.load(tmp_path / "out")
    assert graded.hash == plain.hash
    expected = fit_grades(plain, pairs).state_dict()
    assert expected.keys() == graded.head.state_dict().keys() > plain.head.state_dict().keys()
    assert expected["graded.weight"].abs().mean() > 0.01
    for name, weight in graded.head.state_dict().items():
        torch.testing.assert_close(weight, expected[name], atol=2e-3, rtol=2e-3, msg=name)


def test_grades_need_a_head_and_pairs(release, runs, tmp_path):
    grades = tmp_path / "grades.yaml"
    grades.write_text("sources: []\n")
    done = release(runs, tmp_path / "out", "--grades", grades)
    assert (done.returncode, done.stderr) == (2, f"error: {grades}: sources must not be empty\n")
    grades.write_text("sources: [{source: none.jsonl}]\n")
    done = release(runs, tmp_path / "out", "--grades", grades)
    message = "error: --grades needs runs whose model has a meaning head\n"
    assert (done.returncode, done.stderr) == (2, message)
    assert not (tmp_path / "out").exists()
