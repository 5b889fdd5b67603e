"""Measurements of a model, also of its meaning head, for the model card."""

import json
from pathlib import Path
from unittest import mock

import pytest
import yaml
from safetensors.numpy import load_file
from sklearn.metrics import roc_auc_score

from simllm import SimLLM
from simllm.io.reading import objects
from simllm.metrics import registry
from simllm.model import ppmi_vectors, saved_model
from simllm.perturb.summaries import lexicon
from train.contrastive.meaning_pairs import read_items
from train.corpus.decontaminate import ExcludedTexts
from train.release import card
from train.release import measure as measure_
from train.release.calibrate import score_random_pairs
from train.release.measure import MeasureConfig, measure
from train.runtime.config import load

pytestmark = pytest.mark.slow


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
    assert "same_above" not in unrelated
    weights = load_file(model_folder / "model.safetensors").values()
    assert figures["model"]["parameters"] == sum(tensor.size for tensor in weights)
    assert figures["model"]["head_parameters"] == 0


def test_pairs_with_several_sentences_are_measured_apart(tmp_path):
    """Ratings fall with added words for single sentences, and rise for others."""
    file = tmp_path / "rated.jsonl"
    rows = [
        {
            "reference": "Opens a file." + " It may fail." * several,
            "candidate": "opens a file" + " now" * words,
            "rating": -words if several else words,
        }
        for several in (0, 1)
        for words in range(25)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    metrics = [registry.load("chrf"), registry.load("rouge-l")]
    found = measure_.correlate_lengths(file, metrics)
    assert [found[name]["pairs"] for name in ("one", "several")] == [25, 25]
    assert found["one"]["rouge-l"] == pytest.approx(-1)
    assert found["several"]["rouge-l"] == pytest.approx(1)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[20:]))
    assert measure_.correlate_lengths(file, metrics).keys() == {"several"}
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[:30]))
    assert measure_.correlate_lengths(file, metrics) == {}


def test_false_alarms_of_the_head_on_random_pairs(head_folder, comments):
    metric = SimLLM(head_folder)
    texts = sorted(set(comments[:100]))
    found = measure_._score_random_pairs(metric, texts, 200)
    scores = score_random_pairs(metric, texts, 200)
    assert found["pairs"] == 200
    assert found["mean"] == pytest.approx(scores.values.mean())
    assert found["same_above"]["0.5"] == pytest.approx((scores.same > 0.5).mean())


def test_no_text_is_paired_with_itself(head_folder):
    texts = ["opens the file", "adds two lists"]
    metric = SimLLM(head_folder)
    (expected,) = metric.score(texts[:1], texts[1:]).values
    assert score_random_pairs(metric, texts, 50).values == pytest.approx([expected] * 50)


def test_examples_have_the_scores_of_both_outputs(model_folder, head_folder):
    pairs = [("opens the file", "opens the file"), ("opens the file", "adds two lists")]
    rows = measure_.score_examples(SimLLM(head_folder), pairs)
    assert rows[0] == {"texts": ["opens the file"] * 2, "score": 1, "same": 1}
    assert "same" not in measure_.score_examples(SimLLM(model_folder), pairs)[1]


def test_figures_of_baselines_are_kept_as_long_as_the_data_are_the_same(model_folder, sets):
    config = load(MeasureConfig, sets, [])
    before = measure(model_folder, config)
    before["spearman"]["set/rated"]["jaccard"]["rho"] = 0.123
    again = measure(model_folder, config, before)
    assert again == before
    assert list(again["spearman"]["set/rated"]) == ["pairs", "simllm", "jaccard"]
    more = load(MeasureConfig, sets, ["baselines=[rouge-l,jaccard]"])
    added = measure(model_folder, more, before)
    assert list(added["contrast"]) == ["simllm", "rouge-l", "jaccard"]
    assert added["spearman"]["set/rated"]["jaccard"]["rho"] == 0.123
    rated = Path(config.rated[0])
    rated.write_text(rated.read_text().replace('"rating": 0', '"rating": 1'))
    assert measure(model_folder, config, before)["spearman"]["set/rated"]["jaccard"]["rho"] != 0.123


def test_a_baseline_whose_model_is_missing_is_left_out(model_folder, nli_folder, sets):
    config = load(MeasureConfig, sets, [f"baselines=[nli=none,nli={nli_folder},jaccard]"])
    with pytest.warns(UserWarning, match="nli=none is not measured"):
        figures = measure(model_folder, config)
    assert list(figures["contrast"]) == ["simllm", nli_folder.name, "jaccard"]
    assert nli_folder.name in figures["spearman"]["set/rated"]


def test_encoders_are_named_by_their_folders(model_folder):
    assert measure_.metric_name(f"sentence-bert={model_folder}") == model_folder.name
    weights = load_file(model_folder / "model.safetensors").values()
    assert measure_.count_parameters(str(model_folder)) == sum(tensor.size for tensor in weights)


def test_comments_of_other_repositories_are_used_for_the_retrieval_only(model_folder, sets, tmp_path):
    config = yaml.safe_load(sets.read_text()) | {"baselines": [], "comments_per_language": 10_000}
    before = measure(model_folder, MeasureConfig(**config))
    other = tmp_path / "other.jsonl"
    with other.open("w") as file:
        for number, (_, row) in enumerate(objects(Path(config["comments"]))):
            split = ("train", "test")[number % 2]  # both are used
            file.write(json.dumps(row | {"language": "ruby", "split": split}) + "\n")
    after = measure(model_folder, MeasureConfig(**config | {"unseen_comments": str(other)}))
    assert set(after["languages"]) == {"ruby"}
    rows = [row for _, row in objects(other)]
    described = [
        row["description"].removeprefix(row["summary"]).split() for row in rows if "description" in row
    ]
    assert after["languages"]["ruby"]["pairs"] == sum(len(words) > 3 for words in described)
    assert (before["unseen"], after["unseen"]) == (False, True)
    assert after["random_pairs"] == before["random_pairs"]


@pytest.mark.parametrize("name", ["other.jsonl", "other[1].jsonl"])
def test_an_input_is_not_overwritten(call, model_folder, sets, tmp_path, name):
    config = yaml.safe_load(sets.read_text())
    other = tmp_path / name
    other.write_bytes(Path(config["comments"]).read_bytes())
    sets.write_text(yaml.safe_dump(config | {"unseen_comments": str(other)}))
    before = other.read_bytes()
    done = call(measure_, model_folder, "--config", sets, "-o", other, "--overwrite")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert other.read_bytes() == before


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
    assert "none.jsonl (change or leave out" in done.stderr.splitlines()[-1]


def test_flags_are_counted_among_similar_texts(head_folder, items):
    metric = SimLLM(head_folder)
    test = read_items(items, "test", ExcludedTexts([]), lexicon.load().held_out_words)
    flags = measure_.measure_flags(metric, test)
    scores = metric.score([item.same[1] for item in test], [item.same[0] for item in test])
    similar = scores.values >= 0.5
    found = flags["rewordings"]
    assert found["similar"] == similar.sum() > 0
    assert found["flagged"] == pytest.approx((scores.same[similar] < 0.3).mean())
    assert (
        f"it marks {found['flagged']:.0%} of {found['similar']} similar rewordings" in card._flags(flags)[0]
    )


def test_all_unseen_items_are_measured(head_folder, items):
    metric = SimLLM(head_folder)
    unseen = read_items(items, None, ExcludedTexts([]), lexicon.load().held_out_words)
    figures = measure_.measure_unseen_items(metric, unseen)
    assert figures["items"] == 100
    texts = [f"opens {i} files" for i in range(100)]
    same = metric.score([f"open {i} files" for i in range(100)], texts).same
    changed = metric.score([f"adds {i} keys" for i in range(100)], texts).same
    labels = [1] * 100 + [0] * 100
    assert figures["auc"]["simllm-same"] == pytest.approx(roc_auc_score(labels, [*same, *changed]), abs=1e-3)
    assert (
        f"simllm-same {figures['auc']['simllm-same']:.3f}".replace("0.", ".")
        in card._unseen_items(figures)[0]
    )


def test_reliability_is_measured_at_two_base_rates(head_folder, items, tmp_path):
    labelled, comments = tmp_path / "labelled.jsonl", tmp_path / "comments.txt"
    comments.write_text("".join(f"opens the first file of {i} users\n" for i in range(60)))
    rows = [
        {"a": f"opens {i}", "b": f"{verb} {i}", "label": label, "set": "mine"}
        for i in range(60)
        for verb, label in (("open", "same"), ("closes", "different"))
    ]
    labelled.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = mock.Mock(test_comments=str(comments), labelled=str(labelled), items=items)
    even = measure_.measure_reliability(SimLLM(head_folder), config)["reliability"]
    rare = even["rare"]
    different = sum(round(b["size"] * (1 - b["share"])) for b in even["bins"])
    assert rare["pairs"] == different + round(different / 9)
    assert sum(b["size"] * b["share"] for b in rare["bins"]) == pytest.approx(rare["pairs"] / 10, abs=1)
    odds = [b["probability"] / (1 - b["probability"]) for b in (even["bins"][-1], rare["bins"][-1])]
    assert odds[1] < odds[0] / 4  # nine different pairs for each other one
    text = "\n".join(card._reliability(even))
    assert f"{rare['accuracy']:.0%} are right with `--prior 0.1`" in text.replace("\n", " ")
