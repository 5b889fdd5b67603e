"""The metric in other frameworks: each adapter gives the scores of `SimLLM.score`.

A test of a framework that is not installed is skipped. The extra `dev` does not install lm-eval, deepeval
and ragas: each brings many packages. CONTRIBUTING.md says how to run their tests.
"""

import copy
import json
import os
import pickle
import subprocess
import sys
import unittest
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from simllm import InputError, SimLLM, assert_same_meaning
from simllm.analysis import frameworks
from simllm.analysis.explanation import explain_clauses
from simllm.analysis.frameworks import EVALUATE_MODULE, MtebModel
from simllm.scoring.scores import SCALES
from tests.conftest import ROOT

EXAMPLES = ROOT / "docs" / "examples" / "frameworks"
DATA = ROOT / "docs" / "examples" / "data"
LONG = (
    "Parses the configuration file. Raises an error if a key is missing.",
    "Parses the configuration file. Returns None if a key is missing.",
)


def run(*command, cwd, status=0, **environment):
    """Run Python in a process that cannot reach the network through the libraries of Hugging Face."""
    offline = {"HF_HOME": str(cwd / "hf"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, *map(str, command)], cwd=cwd, env=os.environ | offline | environment,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def rows_of(name):
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


@pytest.fixture(scope="module")
def metric(graded_folder):
    return SimLLM(graded_folder)


@pytest.fixture(scope="module")
def pairs(comments):
    return comments[:40], comments[1:41]


@settings(max_examples=25)
@given(st.data())
def test_passes_from_the_limit_on(metric, comments, data):
    texts = st.sampled_from(comments[:60])
    candidate, reference = data.draw(texts), data.draw(texts)
    scale = data.draw(st.sampled_from(["raw", "same", "graded"]))
    limit = data.draw(st.floats(-1 if scale == "raw" else 0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about texts that are too long for this small model
        value = metric.score([candidate], [reference]).on(scale)[0]
        for at, passes in ((limit, value >= limit), (float(value), True)):
            try:
                assert_same_meaning(candidate, reference, min(max(at, -1), 1), scale=scale, metric=metric)
            except AssertionError:
                assert not passes
            else:
                assert passes


def failure(*arguments, **options):
    with pytest.raises(AssertionError) as caught:
        assert_same_meaning(*arguments, **options)
    return str(caught.value).splitlines()


def test_the_failure_shows_texts_values_and_signature(metric):
    scores = metric.score(["adds\na list"], ["removes a list"])
    same = scores.same[0]
    first, *lines = failure("adds\na list", "removes a list", 1, metric=metric)
    assert first == f"the texts differ in meaning: same {same:.4f} is below the limit 1"
    assert lines[:2] == ["  candidate: 'adds\\na list'", "  reference: 'removes a list'"]
    assert lines[2].startswith(f"  score {scores.values[0]:.4f}, same {same:.4f}")
    assert lines[-1] == f"  signature: {metric.signature}"
    first, *_ = failure("adds a list", "removes a list", 1, scale="raw", metric=metric)
    assert first.startswith("the texts differ in meaning: score ")


def test_the_failure_shows_the_clauses_of_explain(graded_folder):
    metric = SimLLM(graded_folder, prior=1e-6)  # few texts mean the same
    lines = failure(*LONG, 1, metric=metric)
    explained = explain_clauses(metric, *LONG)
    differing = [
        (side, clause)
        for side in ("candidate", "reference")
        for clause in getattr(explained, side)
        if clause.note or clause.same < 0.5
    ]
    assert differing
    assert lines[4:-1] == [
        f"  {side} {clause.text!r}: {clause.note or 'differs'}; closest to {clause.match!r}"
        for side, clause in differing
    ]


def test_a_failure_without_an_explanation(metric, model_folder):
    lines = failure("a list", "", metric=metric)
    assert any("  warning: 1 of 1 pairs have a text that is empty" in line for line in lines)
    by_token = SimLLM(model_folder, similarity="f1")
    assert len(failure("a list", "removes it", 1, scale="raw", metric=by_token)) == 5


def test_equal_texts_without_words_pass(metric):
    with pytest.warns(UserWarning, match="empty"):
        assert_same_meaning("", " ", metric=metric)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 50}, "limit 50: expected 0 to 1 on the scale same"),
        ({"limit": float("nan")}, "limit nan: expected 0 to 1 on the scale same"),
        ({"limit": 101, "scale": "percentile"}, "limit 101: expected 0 to 100 on the scale percentile"),
        ({"scale": "percentile"}, "limit: expected a limit from 0 to 100 with the scale percentile"),
        ({"scale": "cosine"}, "scale 'cosine': expected one of raw, percentile, same, graded"),
    ],
)
def test_refuses_limits_off_the_scale(metric, options, message):
    with pytest.raises(InputError) as caught:
        assert_same_meaning("a", "a", metric=metric, **options)
    assert str(caught.value) == message


def test_every_scale_has_a_range():
    assert frameworks._RANGES.keys() == set(SCALES)


def test_refuses_what_is_no_text(metric, model_folder):
    with pytest.raises(TypeError, match="expected a text, got NoneType"):
        assert_same_meaning("a", None, metric=metric)
    with pytest.raises(InputError, match="no meaning head"):
        assert_same_meaning("a", "a", metric=SimLLM(model_folder))


def test_the_assertion_comes_before_warnings_that_are_errors(model_folder):
    metric, long = SimLLM(model_folder), "adds a list " * 100
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(
            AssertionError, match=r"(?s)is below the limit 0.9999.*warning: 1 of 2 texts cut at 64 tokens"
        ):
            assert_same_meaning(long, "closes it", 0.9999, scale="raw", metric=metric)
        with pytest.raises(UserWarning, match="cut at 64"):
            assert_same_meaning(long, "closes it", -1, scale="raw", metric=metric)
    with pytest.warns(UserWarning, match="cut at 64") as caught:
        assert_same_meaning(long, "closes it", -1, scale="raw", metric=metric)
    assert caught[0].filename == __file__


def test_in_unittest(metric):
    class Case(unittest.TestCase):
        def test(self):
            assert_same_meaning("adds a list", "removes a list", 1, metric=metric)

    result = unittest.TestResult()
    Case("test").run(result)
    assert (len(result.failures), result.errors) == (1, [])


@pytest.mark.slow
def test_pytest_shows_the_test_and_not_simllm(tmp_path):
    # As in a checkout without xdist: the options in pyproject.toml need it.
    command = ["-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", EXAMPLES / "test_summaries.py"]
    shown = run(*command, cwd=tmp_path, status=1)
    assert "2 failed, 1 passed" in shown
    assert "frameworks.py" not in shown.replace("docs/examples/frameworks", "")
    failures = shown.partition("short test summary")[0]  # which repeats the messages where CI is set
    assert failures.count(f"signature: {SimLLM().signature}") == 2


# Finds no torch, as where it is not installed.
NO_TORCH = """
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *places: None if name == "torch" else find(name, *places)
"""


@pytest.mark.slow
def test_asserting_without_torch(tmp_path):
    program = NO_TORCH + (
        "from simllm import assert_same_meaning\n"
        "assert_same_meaning('Gets the name of the user.', \"Returns the user's name.\")\n"
        "assert_same_meaning('Removes a user.', 'Adds a user.')"
    )
    done = subprocess.run(
        [sys.executable, "-O", "-c", program], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "AssertionError: the texts differ in meaning: same 0.0" in done.stderr
    assert "|engine:onnxruntime|" in done.stderr


@pytest.fixture
def torch_metric():
    pytest.importorskip("torchmetrics")
    from simllm.analysis import torch_metric

    return torch_metric.SimLLMScore


@pytest.mark.filterwarnings("ignore:.*texts cut at")
@pytest.mark.parametrize("scale", ["raw", "same", "graded"])
def test_torchmetrics_gives_the_mean(metric, torch_metric, pairs, scale):
    expected = metric.score(*pairs)
    found = torch_metric(metric, scale=scale)
    for start in range(0, 40, 15):
        batch = [texts[start : start + 15] for texts in pairs]
        value = found(*batch)  # `forward` returns the mean of the batch
        assert value.item() == pytest.approx(metric.score(*batch).on(scale).mean(), abs=1e-6)
    assert found.compute().item() == pytest.approx(expected.on(scale).mean(), abs=1e-6)
    assert found.signature == expected.signature


@pytest.mark.filterwarnings("ignore:.*texts cut at", "ignore:The ``compute`` method")
def test_torchmetrics_merges_copies_and_resets(metric, torch_metric, pairs):
    from torchmetrics import MetricCollection

    first, second = torch_metric(metric), torch_metric(metric)
    first.update(*(texts[:7] for texts in pairs))
    second.update(*(texts[7:] for texts in pairs))
    clone = MetricCollection([second]).clone(prefix="val_")
    for other in (pickle.loads(pickle.dumps(second)), copy.deepcopy(second), clone["SimLLMScore"]):
        other.merge_state(first)
        assert other.compute().item() == pytest.approx(metric.score(*pairs).mean, abs=1e-6)
    first.reset()
    assert torch.isnan(first.compute())


def test_torchmetrics_refuses_a_scale_that_the_model_lacks(torch_metric, model_folder):
    with pytest.raises(InputError, match="no meaning head"):
        torch_metric(SimLLM(model_folder), scale="same")
    with pytest.raises(InputError, match="scale 'cosine': expected one of"):
        torch_metric(SimLLM(model_folder), scale="cosine")
    with pytest.raises(TypeError, match="got a lone string"):
        torch_metric(SimLLM(model_folder)).update("adds", "adds")


PROCESS = """
import sys, torch.distributed as dist
from simllm import SimLLM
from simllm.analysis.torch_metric import SimLLMScore
folder, place, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
dist.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=3)
metric = SimLLMScore(SimLLM(folder))
texts = ["adds two", "gets it", "opens the file", "closes it"]
for start in ([0, 1], [2], [])[rank]:  # the last process has no pairs
    metric.update(texts[start : start + 1], texts[start + 1 : start + 2])
print(metric.compute().item())
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_torchmetrics_joins_processes(metric, torch_metric, graded_folder, tmp_path):
    command = [sys.executable, "-c", PROCESS, graded_folder, tmp_path / "meet"]
    processes = [
        subprocess.Popen([*command, str(rank)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for rank in range(3)
    ]
    found = [float(process.communicate(timeout=300)[0]) for process in processes]
    expected = metric.score(
        ["adds two", "gets it", "opens the file"], ["gets it", "opens the file", "closes it"]
    )
    assert found == pytest.approx([expected.mean] * 3, abs=1e-6)


EVALUATE = """
import json, sys, evaluate
from simllm.analysis.frameworks import EVALUATE_MODULE
folder, long = sys.argv[1:]
module = evaluate.load(EVALUATE_MODULE)
pairs = json.load(sys.stdin)
for candidate, reference in zip(*pairs):
    module.add(prediction=candidate, reference=reference)
results = [module.compute(model=folder)]
module.add_batch(predictions=pairs[0], references=pairs[1])
results.append(module.compute(model=folder, long=long))
both = evaluate.combine([module, evaluate.load(EVALUATE_MODULE)])
results.append(sorted(both.compute(predictions=["a"], references=["a"])))
for wrong in ({"predictions": "adds", "references": "gets"}, {"predictions": ["a"], "references": [["a"]]}):
    try:
        module.compute(**wrong)
    except TypeError as error:
        results.append(str(error))
print(json.dumps(results))
"""


@pytest.mark.slow
def test_hugging_face_evaluate(head_folder, pairs, tmp_path):
    pytest.importorskip("evaluate")
    offline = {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", NO_TORCH + EVALUATE, head_folder, "whole"],
        input=json.dumps(pairs), env=os.environ | offline | {"PYTHONPATH": str(ROOT)}, cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *found, keys, lone, nested = json.loads(done.stdout)
    for result, long in zip(found, ("sentences", "whole"), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = SimLLM(head_folder, long=long, engine="onnxruntime").score(*pairs)
        assert result["scores"] == pytest.approx(expected.values, abs=1e-6)
        assert result["mean_score"] == pytest.approx(expected.mean, abs=1e-6)
        assert result["signature"] == expected.signature
    assert "simllm_score_0_signature" in keys
    assert lone == "predictions: expected a list of texts, got a lone string; write [text]"
    assert nested == "references[0]: expected a text, got list"


def test_the_evaluate_module_is_a_folder_with_a_script_of_its_name():
    folder = ROOT / "simllm" / "analysis" / "simllm_score"
    assert str(folder) == EVALUATE_MODULE
    assert (folder / "simllm_score.py").is_file()


def test_mteb_encodes_batches_in_order(model_folder, comments):
    whole = SimLLM(model_folder, long="whole")
    batches = [{"text": comments[:3]}, {"text": comments[3:4]}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = MtebModel(whole).encode(batches, prompt_type=None), whole.embed(comments[:4])
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    "options", [{}, {"long": "whole", "similarity": "inverse-euclidean"}, {"similarity": "f1"}]
)
def test_mteb_refuses_scores_that_are_no_cosines(model_folder, options):
    with pytest.raises(InputError, match="MTEB compares embeddings"):
        MtebModel(SimLLM(model_folder, **options))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mteb_evaluates_the_encoder(model_folder, tmp_path, monkeypatch):
    mteb = pytest.importorskip("mteb")
    monkeypatch.syspath_prepend(EXAMPLES)
    from mteb_task import RatedSummaries

    rows = rows_of("ratings.jsonl")
    cache = mteb.ResultCache(tmp_path / "cache")
    for pooling in ("mean", "max"):  # the cache must not give the second model the results of the first
        metric = SimLLM(model_folder, long="whole", pooling=pooling)
        expected = metric.score([row["candidate"] for row in rows], [row["reference"] for row in rows])
        options = {"cache": cache, "prediction_folder": tmp_path / pooling, "show_progress_bar": False}
        done = mteb.evaluate(MtebModel(metric), [RatedSummaries()], **options)
        (file,) = (tmp_path / pooling).glob("*.json")
        found = json.loads(file.read_text())["default"]["test"]["similarity_scores"]
        assert found == pytest.approx(expected.values, abs=1e-6)
        assert done.model_revision == expected.signature.replace("|", "_").replace(":", "-")
    first, second = np.random.default_rng(0).normal(size=(2, 3, 8)).astype(np.float32)
    table = MtebModel(metric).similarity(first, second)
    assert table.diagonal().numpy() == pytest.approx(
        MtebModel(metric).similarity_pairwise(first, second).numpy()
    )


@pytest.mark.slow
def test_mteb_example(tmp_path):
    pytest.importorskip("mteb")
    shown = run(EXAMPLES / "mteb_task.py", cwd=tmp_path).splitlines()
    assert shown[0].startswith("spearman 0.")
    assert "version-" in shown[1]


@pytest.fixture(scope="module")
def scores_of_pairs():
    rows = rows_of("pairs.jsonl")
    return SimLLM().score([row["pred"] for row in rows], [row["gold"] for row in rows])


@pytest.mark.slow
def test_lm_evaluation_harness_example(tmp_path):
    pytest.importorskip("lm_eval")
    (tmp_path / "functions.jsonl").write_bytes((DATA / "functions.jsonl").read_bytes())
    words = ["--model", "dummy", "--include_path", EXAMPLES, "--tasks", "summarize_code"]
    words += ["--output_path", "out", "--log_samples"]
    shown = run("-m", "lm_eval", *words, cwd=tmp_path, TMPDIR=str(tmp_path))
    # The dummy model answers everything with "lol".
    references = [row["reference"] for row in rows_of("functions.jsonl")]
    expected = SimLLM().score(["lol"] * len(references), references)
    (results,) = (tmp_path / "out").rglob("results_*.json")
    found = json.loads(results.read_text())["results"]["summarize_code"]
    assert found["simllm,none"] == pytest.approx(expected.mean, abs=1e-6)
    assert found["simllm_same,none"] == pytest.approx(expected.same.mean(), abs=1e-6)
    assert found["simllm_signature,none"] == expected.signature
    (samples,) = (tmp_path / "out").rglob("samples_*.jsonl")
    each = [json.loads(line)["simllm"] for line in samples.read_text().splitlines()]
    assert each == pytest.approx(expected.values, abs=1e-6)
    assert "simllm_same" in shown


@pytest.mark.slow
def test_deepeval_example(tmp_path, scores_of_pairs):
    pytest.importorskip("deepeval")
    options = {"DEEPEVAL_TELEMETRY_OPT_OUT": "1", "PYTHONPATH": str(ROOT)}
    shown = run(EXAMPLES / "deepeval_metric.py", DATA / "pairs.jsonl", cwd=tmp_path, **options)
    rows = [line.split("\t") for line in shown.splitlines() if line.startswith("method-")]
    assert [float(value) for _, value, _ in rows] == pytest.approx(scores_of_pairs.same, abs=1e-4)
    assert [verdict == "passed" for *_, verdict in rows] == (scores_of_pairs.same >= 0.5).tolist()


@pytest.mark.slow
def test_ragas_example(tmp_path, scores_of_pairs):
    pytest.importorskip("ragas")
    options = {"RAGAS_DO_NOT_TRACK": "true", "PYTHONPATH": str(ROOT)}
    shown = run(EXAMPLES / "ragas_metric.py", DATA / "pairs.jsonl", cwd=tmp_path, **options)
    found = [float(line.split("\t")[1]) for line in shown.splitlines()]
    assert found == pytest.approx(scores_of_pairs.values, abs=1e-4)
