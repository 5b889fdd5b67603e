"""The model card: its sections, and its metadata as Hugging Face reads it."""

import json
from dataclasses import replace

import pytest
from huggingface_hub import ModelCard

from simllm.errors import InputError
from tests.conftest import ROOT
from train.release.card import _failures, decimal, learning_curve, quality_table, write_card
from train.release.refresh import read_sources, read_text

MODEL = ROOT / "checkpoints" / "default"


@pytest.fixture(scope="module")
def sources():
    return read_sources(MODEL, read_text(ROOT / "checkpoints" / "notes.md"))


def test_card_goes_from_what_the_model_is_to_how_it_was_made(sources):
    card = write_card(sources)
    titles = ["How good it is", "Where it fails", "How to use it", "How it was made", "Training"]
    places = [card.index(f"\n## {title}\n") for title in titles]
    assert places == sorted(places)
    assert card.index("# The default model") < places[0]
    # Only the folded table of the stages comes after the learning curve.
    assert card.count("<details>") == card.count("</details>")
    assert card.endswith("</details>\n")


def test_metadata_is_what_hugging_face_reads(sources):
    data = ModelCard(write_card(sources)).data
    assert (data.license, data.language, data.library_name) == ("apache-2.0", "en", "simllm")
    results = {(result.dataset_type, result.metric_name): result.metric_value for result in data.eval_results}
    rho = sources.figures["spearman"]["rated/haque2022"]["simllm"]["rho"]
    assert results["rated/haque2022", "Spearman's correlation"] == round(rho, 4)
    same = sources.figures["contrast"]["simllm-same"]["adversarial"]["all"]
    assert results["contrast-adversarial", "accuracy of simllm, `same`"] == round(same, 4)


def test_sets_with_a_better_metric_are_named(sources):
    rows = {"simllm": {"rho": 0.32}, "rouge-l": {"rho": 0.53}, "jaccard": {"rho": 0.4}}
    figures = {**sources.figures, "spearman": {"mine": {"pairs": 9, **rows}}}
    assert "mine: ROUGE-L .53, the score .32." in _failures(figures)[1]
    figures["spearman"]["mine"]["simllm"]["rho"] = 0.54
    assert "mine" not in _failures(figures)[1]


def test_sets_that_chose_updates_are_named(sources):
    card = write_card(sources)
    assert "chosen on Shen 2021, STS-B dev" in card
    nothing = [stage | {"config": {}} for stage in sources.training]
    assert "chosen on" not in write_card(replace(sources, training=nothing))


def test_notes_without_metadata_or_title_are_enough(sources):
    card = write_card(replace(sources, notes="## Notes\n\nOf mine.\n"))
    assert "\n# A model for simllm\n" in card
    assert "\n## Notes\n\nOf mine.\n\n## Training\n" in card


@pytest.mark.parametrize("head", ["license: [", "- a list", ""])
def test_wrong_metadata_is_one_line(sources, head):
    with pytest.raises(InputError, match="notes: expected YAML"):
        write_card(replace(sources, notes=f"---\n{head}\n---\n\nOf mine.\n"))


@pytest.mark.parametrize(
    ("unseen", "source"),
    [(True, "Comments of repositories that are not trained on"), (False, "Held-out comments")],
)
def test_card_names_the_source_of_the_comments(sources, unseen, source):
    card = write_card(replace(sources, figures=sources.figures | {"unseen": unseen}))
    assert f"\n## Languages\n\n{source}: how often a summary is nearest" in card


def test_learning_curve_adds_up_distillations_and_doubles_tokens():
    training = [
        {"objective": "distillation", "log": "a"},
        {"objective": "meaning head", "log": "b"},
        {"objective": "distillation", "log": "c"},
    ]
    rows = {"a": [1, 2, 3], "b": [7], "c": [1, 2, 4, 5]}
    logs = {
        name: [{"update": n, "tokens": n, "spearman_dev": n / 10} for n in tokens]
        for name, tokens in rows.items()
    }
    curve = learning_curve(training, logs)
    assert [row["tokens"] for row in curve] == [1, 2, 4, 8]
    assert curve[-1] == {"tokens": 8, "spearman_dev": 0.5}


def test_highest_figure_of_each_column_is_bold():
    both = {"simllm": {"rho": 0.8}, "jaccard": {"rho": 0.85}}
    figures = {
        "model": {"parameters": 13_300_000},
        "parameters": {},
        "spearman": {"mine": {"pairs": 9, **both}},
        "contrast": {"simllm": {"balanced": {"all": 0.6}}, "jaccard": {"balanced": {"all": 0.5}}},
    }
    assert quality_table(figures, ["mine"], ["balanced"]).splitlines()[2:] == [
        "| simllm, score | .800 | **60%** | 13.3M |",
        "| Jaccard | **.850** | 50% |  |",
    ]


@pytest.mark.parametrize(
    ("value", "text"), [(0.8486, ".849"), (-0.05, "-.050"), (1.0, "1.000"), (0.9999, "1.000"), (0, ".000")]
)
def test_decimals_have_no_leading_zero(value, text):
    assert decimal(value) == text


def test_configurations_of_all_stages_are_in_the_folder():
    stages = json.loads((MODEL / "training.json").read_text())
    assert all({"name", "log", "objective", "config", "tokens"} <= stage.keys() for stage in stages)
    assert all((MODEL / stage["log"]).is_file() for stage in stages)
