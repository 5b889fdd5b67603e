"""The probability of the same meaning in the metric, the command line and the tables."""

import json
import pickle
import shutil
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from simllm import InputError, SimLLM
from simllm.analysis.explanation import explain
from simllm.model import saved_model
from simllm.model.config import HeadConfig
from simllm.model.network import MeaningHead
from simllm.scoring import embedding
from simllm.scoring.scores import Scores
from tests.command import process, run

pytestmark = pytest.mark.filterwarnings("ignore:.*(empty after cleaning|texts cut at|read in windows)")
TOLERANCE = {"exact": 1e-5, "fast": 0.05, "window": 1e-5}
WORDS = "adds removes the list file of not two . first name returns".split()
TEXT = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
    st.text(max_size=30),
    st.sampled_from(["", " ", "\0", "<mask>", "</s>", "漢", "returns the first value " * 40]),
)
PAIRS = st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=6)


@pytest.fixture(scope="module", params=["exact", "fast", "window"])
def metric(request, head_folder):
    options = {"on_long": "window"} if request.param == "window" else {"mode": request.param}
    return SimLLM(head_folder, **options)


def tolerance(metric):
    return TOLERANCE["fast" if metric.mode == "fast" else "exact"]


@settings(max_examples=10)
@given(PAIRS, st.randoms(use_true_random=False))
def test_same_is_a_symmetric_probability_independent_of_other_pairs(metric, pairs, random):
    candidates, references = map(list, zip(*pairs, strict=True))
    same = metric.score(candidates, references).same
    assert same.shape == (len(pairs),)
    assert ((same >= 0) & (same <= 1)).all()
    assert metric.score(references, candidates).same == pytest.approx(same, abs=tolerance(metric))
    order = random.sample(range(len(pairs)), len(pairs))
    mixed = metric.score([candidates[i] for i in order] * 2, [references[i] for i in order] * 2)
    assert mixed.same == pytest.approx(np.tile(same[order], 2), abs=tolerance(metric))
    alone = [metric.score([c], [r]).same[0] for c, r in pairs]
    assert alone == pytest.approx(same, abs=tolerance(metric))


@settings(max_examples=20)
@given(st.lists(TEXT, min_size=1, max_size=6))
def test_identical_texts_have_probability_one(metric, texts):
    scores = metric.score(texts, texts)
    assert (scores.same == 1).all()
    assert (scores.values == 1).all()
    assert not scores.changed.any()


def test_empty_texts_are_treated_as_by_the_similarity(metric):
    candidates, references = ["", "", " ", "adds", "漢字", "漢字"], ["", "adds", "\n", "", "漢字", "漢"]
    scores = metric.score(candidates, references)
    assert scores.values.tolist() == scores.same.tolist() == [1, 0, 1, 0, 1, 0]


@pytest.mark.parametrize("on_long", ["truncate", "window"])
def test_head_does_not_change_the_similarity(head_folder, model_folder, comments, on_long):
    pairs = comments[:60], comments[60:120]
    plain = SimLLM(model_folder, on_long=on_long).score(*pairs)
    headed = SimLLM(head_folder, on_long=on_long).score(*pairs)
    assert headed.values == pytest.approx(plain.values, abs=1e-5)
    assert plain.same is None
    assert headed.same.std() > 0.01  # the random head tells pairs apart


def test_probabilities_of_all_modes_agree(head_folder, comments):
    pairs = comments[:60], comments[60:120]
    plain, exact, fast = (SimLLM(head_folder, mode=m).score(*pairs).same for m in ("plain", "exact", "fast"))
    assert exact == pytest.approx(plain, abs=1e-5)
    assert fast == pytest.approx(plain, abs=0.05)


def test_probabilities_do_not_depend_on_batches(head_folder, comments, monkeypatch):
    metric, pairs = SimLLM(head_folder), (comments[:80], comments[80:160])
    expected = metric.score(*pairs)
    monkeypatch.setattr(embedding, "_TOKENS", 200)
    monkeypatch.setattr(type(metric.engine), "batch_tokens", 100)
    found = metric.score(*pairs)
    assert found.same == pytest.approx(expected.same, abs=1e-5)
    assert found.values == pytest.approx(expected.values, abs=1e-5)


def test_a_pickled_metric_keeps_its_head(head_folder):
    metric = SimLLM(head_folder)
    again = pickle.loads(pickle.dumps(metric))
    pair = ["adds two lists"], ["removes the file"]
    assert again.score(*pair).same == metric.score(*pair).same


def test_a_model_without_a_head_has_no_probability(model_folder, head_folder):
    for metric in (SimLLM(model_folder), SimLLM(head_folder, similarity="f1")):
        scores = metric.score(["adds two"], ["sums two"])
        assert scores.same is None
        assert not scores.changed.any()
        with pytest.raises(InputError, match="no meaning head"):
            scores.on("same")


def test_no_pairs(head_folder):
    scores = SimLLM(head_folder).score([], [])
    assert scores.same.shape == (0,)
    assert scores.on("same").shape == scores.changed.shape == (0,)


def test_changed_texts_are_similar_but_differ_in_meaning():
    values, same = np.array([0.4, 0.9, 0.9, 0.39, 1.0]), np.array([0.29, 0.3, 0.1, 0.0, 1.0])
    scores = Scores(values, 0, 0, 0, 0, "", same=same)
    assert scores.changed.tolist() == [True, False, True, False, False]
    assert scores.on("same") is same
    assert scores.on("raw") is values


def test_calibration_changes_the_probability(head_folder, tmp_path, comments):
    loaded = saved_model.load(head_folder)
    info = saved_model.ModelInfo(meaning=saved_model.MeaningInfo(loaded.head.config, 2.0, -1.0, "some pairs"))
    saved_model.save(tmp_path / "m", loaded.encoder, loaded.tokenizer, info, "# A card\n", head=loaded.head)
    pairs = comments[:10], comments[10:20]
    p, q = SimLLM(head_folder).score(*pairs).same, SimLLM(tmp_path / "m").score(*pairs).same
    assert np.log(q / (1 - q)) == pytest.approx(2 * np.log(p / (1 - p)) - 1, abs=1e-4)


def test_extreme_logits_give_0_and_1_without_a_warning(head_folder, tmp_path):
    loaded = saved_model.load(head_folder)
    for intercept, expected in ((-1e4, 0.0), (1e4, 1.0)):
        meaning = saved_model.MeaningInfo(loaded.head.config, 1.0, intercept)
        info = saved_model.ModelInfo(meaning=meaning)
        saved_model.save(tmp_path / "m", loaded.encoder, loaded.tokenizer, info, "", head=loaded.head)
        assert SimLLM(tmp_path / "m").score(["adds two"], ["sums two"]).same == pytest.approx([expected])


def test_streamed_probabilities_equal_those_of_all_pairs(head_folder, comments):
    metric = SimLLM(head_folder)
    pairs = list(zip(comments[:50], comments[50:100], strict=True))
    whole = metric.score(comments[:50], comments[50:100]).same
    chunks = [scores.same for _, scores in metric.stream(iter(pairs), 7)]
    assert np.concatenate(chunks) == pytest.approx(whole, abs=1e-5)


# The command line.


@pytest.fixture(scope="module")
def doubtful(model_folder, tmp_path_factory):
    """Return a model whose meaning head gives different texts a low probability of the same meaning."""
    loaded = saved_model.load(model_folder)
    torch.manual_seed(0)
    head = MeaningHead(HeadConfig(16, 1, 2), loaded.encoder.config)
    info = saved_model.ModelInfo(meaning=saved_model.MeaningInfo(head.config, 1.0, -30.0))
    folder = tmp_path_factory.mktemp("doubtful") / "model"
    saved_model.save(folder, loaded.encoder, loaded.tokenizer, info, "# A card\n", head=head)
    return folder


@pytest.fixture
def pair_file(tmp_path):
    file = tmp_path / "pairs.jsonl"
    rows = [("gets it", "gets it"), ("adds two lists", "adds two lists ."), ("", "x")]
    file.write_text("".join(json.dumps({"candidate": c, "reference": r}) + "\n" for c, r in rows))
    return file


def test_the_table_has_the_probability_and_a_note(doubtful, pair_file):
    done = run("score", "--jsonl", pair_file, "--model", doubtful, "-f", "text")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == ["score", "same", "candidate", "reference", "note"]
    similar = SimLLM(doubtful).score(["adds two lists"], ["adds two lists ."])
    assert similar.changed.all()
    assert done.stdout.count("meaning may have changed") == 1
    assert run("score", "--jsonl", pair_file, "--model", doubtful, "-f", "tsv").stdout.splitlines()[0] == (
        "score\tsame\tcandidate\treference"
    )


def test_json_has_the_probability_and_the_number_of_changed_pairs(doubtful, pair_file):
    found = json.loads(run("score", "--jsonl", pair_file, "--model", doubtful, "-f", "json").stdout)
    assert [row["same"] for row in found["rows"]] == pytest.approx([1.0, 0.0, 0.0], abs=1e-6)
    assert found["changed"] == 1


def test_measure_same_scores_by_the_probability(doubtful, pair_file):
    done = run("score", "--jsonl", pair_file, "--model", doubtful, "--measure", "same", "-f", "json")
    found = json.loads(done.stdout)
    assert [row["score"] for row in found["rows"]] == pytest.approx([1.0, 0.0, 0.0], abs=1e-6)
    assert found["mean"] == pytest.approx(1 / 3, abs=1e-6)
    assert "same" not in found["rows"][0]


def test_table_of_a_model_without_a_head_is_unchanged(model_folder, pair_file):
    done = run("score", "--jsonl", pair_file, "--model", model_folder, "-f", "json")
    found = json.loads(done.stdout)
    assert found["rows"][0].keys() == {"score", "candidate", "reference"}
    assert "changed" not in found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--measure", "same"], "no meaning head"),
        (["--measure", "same", "--scale", "percentile"], "--measure same has a scale of its own"),
        (["--measure", "same", "--metrics", "jaccard"], "--measure does not go with --metrics"),
        (["--scale", "same"], "--scale: invalid choice: 'same' (choose from 'raw', 'percentile')"),
        (["--measure", "sameness"], "invalid choice"),
    ],
)
def test_a_wrong_measure_is_refused(model_folder, options, message):
    done = run("score", "adds two", "sums two", "--model", model_folder, *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
def test_a_resumed_table_keeps_the_probabilities(head_folder, comments, tmp_path):
    lines = [json.dumps({"candidate": c, "reference": r}) + "\n" for c, r in pairwise(comments[:1200])]
    options = ["score", "--jsonl", "-", "--model", head_folder, "-f", "tsv", "-o"]
    assert run(*options, tmp_path / "whole.tsv", input="".join(lines)).returncode == 0
    broken = [*lines[:1100], "{\n"]  # one chunk is scored before the damaged line is read
    assert run(*options, tmp_path / "a.tsv", input="".join(broken)).returncode == 2
    done = run(*options, tmp_path / "a.tsv", "--resume", input="".join(lines))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()


def test_registry_metric_gives_the_probability(head_folder, pair_file):
    options = ["--metrics", f"simllm-same={head_folder}", "-f", "json"]
    found = json.loads(run("score", "--jsonl", pair_file, *options).stdout)
    expected = SimLLM(head_folder).score(
        ["gets it", "adds two lists", ""], ["gets it", "adds two lists .", "x"]
    )
    assert [row[f"simllm-same={head_folder}"] for row in found["rows"]] == pytest.approx(
        expected.same, abs=1e-5
    )


@pytest.mark.slow
def test_command_in_a_new_process(doubtful):
    done = process("score", "adds two lists", "adds two lists .", "--model", doubtful, "-f", "text")
    assert done.returncode == 0, done.stderr
    assert "meaning may have changed" in done.stdout


# Explanations.


def test_an_explanation_has_the_probability(head_folder, doubtful):
    pair = "adds the two lists", "adds the two files"
    for folder in (head_folder, doubtful):
        metric = SimLLM(folder)
        explanation, scores = explain(metric, *pair), metric.score([pair[0]], [pair[1]])
        assert explanation.same == scores.same[0]
        assert explanation.changed == scores.changed[0]
        for word in (*explanation.candidate, *explanation.reference):
            assert 0 <= word.same_without <= 1


def test_the_words_that_change_the_meaning_are_named(doubtful):
    """Without the word "not", the two texts are equal, so this word is named."""
    explanation = explain(SimLLM(doubtful), "adds the two lists", "adds the two lists not")
    assert explanation.changing_words == ["not"]
    done = run("explain", "adds the two lists", "adds the two lists not", "--model", doubtful)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].endswith("meaning may have changed: not")


def test_explanation_without_a_head_is_unchanged(model_folder):
    explanation = explain(SimLLM(model_folder), "adds the two lists", "adds the two files")
    assert explanation.same is None
    assert explanation.changing_words == []
    done = run("explain", "adds the two lists", "adds the two files", "--model", model_folder)
    assert "same " not in done.stdout


@pytest.mark.parametrize("pair", [("gets", "sets"), ("gets gets gets", "gets"), ("漢 adds", "adds 漢 two")])
def test_unusual_pairs_are_explained(head_folder, pair):
    assert 0 <= explain(SimLLM(head_folder), *pair).same <= 1


def test_warns_once_about_a_truncated_text(head_folder):
    with pytest.warns(UserWarning, match="texts cut at") as caught:
        explain(SimLLM(head_folder), "returns the first value of the list " * 40, "returns the value")
    assert len(caught) == 1


def test_a_prior_of_one_half_changes_nothing_and_others_move_all_probabilities(head_folder, comments):
    pairs = comments[:40], comments[40:80]
    even, rare, frequent = (SimLLM(head_folder, prior=prior) for prior in (0.5, 0.1, 0.9))
    plain = SimLLM(head_folder).score(*pairs)
    assert even.score(*pairs).same.tolist() == plain.same.tolist()
    assert even.signature == plain.signature
    assert (rare.score(*pairs).same < plain.same).all()
    assert (frequent.score(*pairs).same > plain.same).all()
    assert rare.score(*pairs).values.tolist() == plain.values.tolist()
    assert "|prior:0.1|" in rare.signature
    assert pickle.loads(pickle.dumps(rare)).prior == 0.1
    # Nothing is more certain than two equal texts, whatever the prior is.
    assert rare.score(["adds", ""], ["adds", "adds"]).same.tolist() == [1, 0]


@pytest.mark.parametrize("prior", [0, 1, -0.2, 1.5, float("nan")])
def test_a_prior_is_a_share(head_folder, prior):
    with pytest.raises(InputError, match="expected a share between 0 and 1"):
        SimLLM(head_folder, prior=prior)


def test_a_prior_needs_the_meaning_head(model_folder, head_folder):
    for folder, options in ((model_folder, {}), (head_folder, {"similarity": "f1"})):
        with pytest.raises(InputError, match="has no meaning head"):
            SimLLM(folder, prior=0.2, **options)


def test_prior_on_the_command_line(head_folder):
    pair = ["adds two lists", "removes the file"]
    rare = json.loads(run("score", "--model", head_folder, "--prior", "0.2", "-f", "json", *pair).stdout)
    assert rare["prior"] == 0.2
    assert "|prior:0.2|" in rare["signature"]
    same = SimLLM(head_folder, prior=0.2).score([pair[0]], [pair[1]]).same[0]
    assert rare["rows"][0]["same"] == pytest.approx(same)


def test_the_distance_lowers_the_probability_of_texts_that_share_little(head_folder, tmp_path, comments):
    pairs = comments[:60], comments[60:120]
    before = SimLLM(head_folder, long="whole").score(*pairs)
    folder = tmp_path / "model"
    shutil.copytree(head_folder, folder)
    info = json.loads((folder / "simllm.json").read_text())
    info["meaning"]["penalty"] = 5.0
    (folder / "simllm.json").write_text(json.dumps(info))
    after = SimLLM(folder, long="whole").score(*pairs)
    far = before.values < 0.4
    assert (after.same[~far] == before.same[~far]).all()
    logits = np.log(before.same / (1 - before.same)) - 5 * np.clip(0.4 - before.values, 0, None)
    assert after.same == pytest.approx(1 / (1 + np.exp(-logits)), abs=1e-6)
    assert SimLLM(folder).signature != SimLLM(head_folder).signature
    # The distance belongs to the model, not to the similarity that the user chooses.
    other = SimLLM(folder, similarity="inverse-euclidean", pooling="max", long="whole").score(*pairs)
    assert other.same == pytest.approx(after.same, abs=1e-6)


@settings(max_examples=20)
@given(PAIRS)
def test_graded_similarity_is_symmetric_and_from_0_to_1(graded_metric, pairs):
    candidates, references = map(list, zip(*pairs, strict=True))
    graded = graded_metric.score(candidates, references).graded
    assert ((graded >= 0) & (graded <= 1)).all()
    assert graded_metric.score(references, candidates).graded == pytest.approx(graded, abs=1e-5)
    assert (graded_metric.score(candidates, candidates).graded == 1).all()


@pytest.fixture(scope="module")
def graded_metric(graded_folder):
    return SimLLM(graded_folder)


def test_a_graded_output_changes_neither_score_nor_probability(graded_metric, head_folder, comments):
    pairs = comments[:40], comments[40:80]
    plain, graded = SimLLM(head_folder).score(*pairs), graded_metric.score(*pairs)
    assert graded.same == pytest.approx(plain.same, abs=1e-6)
    assert graded.values.tolist() == plain.values.tolist()
    assert plain.graded is None
    assert graded.on("graded").std() > 0.01


def test_graded_measure_of_a_model_without_one_is_an_error(head_folder, graded_folder):
    pair = ["adds two lists", "removes the file"]
    done = run("score", "--model", head_folder, "--measure", "graded", *pair)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "no graded similarity" in done.stderr
    row = json.loads(
        run("score", "--model", graded_folder, "--measure", "graded", "-f", "json", *pair).stdout
    )
    expected = SimLLM(graded_folder).score([pair[0]], [pair[1]])
    assert row["scale"] == "graded"
    assert row["rows"][0]["score"] == pytest.approx(expected.graded[0])
    assert row["rows"][0]["same"] == pytest.approx(expected.same[0])
