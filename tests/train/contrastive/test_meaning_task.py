"""Training of the meaning head during contrastive training."""

import json
from dataclasses import asdict

import numpy as np
import pytest
import torch

from simllm import InputError, SimLLM
from simllm.model import saved_model
from simllm.perturb.summaries import lexicon
from tests.train.contrastive.one_update import (
    assert_equal,
    settings,
    update,
    update_in_processes,
    without_dropout,
)
from train.contrastive.__main__ import train
from train.contrastive.config import MeaningSourceConfig
from train.contrastive.meaning_pairs import DIFFERENT, SAME, open_source
from train.contrastive.task import ContrastiveTask
from train.corpus.decontaminate import ExcludedTexts
from train.runtime.distributed import World
from train.runtime.signals import StopRequest

pytestmark = pytest.mark.slow

NOTHING = ExcludedTexts([])


@pytest.fixture(scope="module")
def words():
    return lexicon.load()


@pytest.fixture(scope="module")
def with_head(update_folder):
    """Return configuration overrides: a meaning head is trained on labelled pairs and on rule-made pairs."""
    labelled = f"source: {update_folder}/rated.jsonl, share: 1, fields: [reference, candidate, rating]"
    labels = "same: ['4'], different: ['0', '1']"
    sources = f"[{{source: {update_folder}/train.txt, share: 3}}, {{{labelled}, {labels}}}]"
    head = "{width: 16, layers: 1, heads: 2, encoder_layers: 2}"
    return [f"meaning={{head: {head}, sources: {sources}, pairs: 12, weight: 0.5}}"]


def drawn(source, count=300):
    random = np.random.default_rng(0)
    return [source.draw(random) for _ in range(count)]


def test_rule_made_pairs_never_have_equal_texts(update_folder, words):
    config = MeaningSourceConfig(source=f"{update_folder}/train.txt", share=1.0)
    found = drawn(open_source(config, NOTHING, words))
    assert all(pair.first != pair.second for pair in found)
    assert 0.3 < np.mean([pair.label for pair in found]) < 0.6
    assert {pair.label for pair in found} == {SAME, DIFFERENT}


def test_single_text_gives_no_pair(tmp_path, words):
    (tmp_path / "one.txt").write_text("gets the name of the file\n")
    source = open_source(MeaningSourceConfig(source=f"{tmp_path}/one.txt", share=1.0), NOTHING, words)
    assert all(pair.first != pair.second for pair in drawn(source))


@pytest.fixture
def labelled(tmp_path):
    rows = [
        ("adds two", "sums two", "same"),
        ("adds two", "Adds  TWO", "different"),  # equal once they are cleaned
        ("gets it", "sets it", "different"),
        ("opens it", "closes it", "opposite"),
        ("reads it", "writes it", None),
        ("", "x", "same"),
        ("a b c d e f", "a b", "same"),
    ]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(dict(zip("abl", row, strict=True))) + "\n" for row in rows))
    return {"source": str(file), "share": 1.0, "fields": ("a", "b", "l"), "max_words": 5}


@pytest.mark.parametrize(
    ("options", "excluded", "expected"),
    [
        ({}, [], {("adds two", SAME), ("gets it", DIFFERENT)}),
        (
            {"different": ("different", "opposite")},
            ["sets it"],
            {("adds two", SAME), ("opens it", DIFFERENT)},
        ),
        ({"same": ()}, [], {("gets it", DIFFERENT)}),
        (
            {"fields": ("a", "b"), "leave_out": {"l": ("same", "opposite")}},
            [],
            {("gets it", SAME), ("reads it", SAME)},
        ),
        ({"only": {"l": ("same",)}}, [], {("adds two", SAME)}),
    ],
)
def test_labelled_pairs(labelled, words, options, excluded, expected):
    source = open_source(MeaningSourceConfig(**labelled | options), ExcludedTexts(excluded), words)
    assert {(pair.first, pair.label) for pair in drawn(source)} == expected


def test_words_are_put_into_sentences(tmp_path, words):
    rows = [{"a": "big", "b": "large", "l": "same"}, {"a": "big", "b": "small", "l": "different"}]
    (tmp_path / "words.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "sentences.txt").write_text("a big file\na file\nthe big , big list\n")
    config = MeaningSourceConfig(
        source=f"{tmp_path}/words.jsonl",
        share=1.0,
        fields=("a", "b", "l"),
        sentences=(f"{tmp_path}/sentences.txt",),
    )
    found = {(pair.first, pair.second, pair.label) for pair in drawn(open_source(config, NOTHING, words))}
    assert found == {
        ("a big file", "a large file", SAME),
        ("a big file", "a small file", DIFFERENT),
        ("the big , big list", "the large , big list", SAME),
        ("the big , big list", "the small , big list", DIFFERENT),
    }


def test_held_out_words_are_in_no_pair(labelled, tmp_path):
    held_out = lexicon.load(held_out=[("get", "set"), ("big", "small")])
    config = MeaningSourceConfig(**labelled | {"different": ("different", "opposite")})
    texts = {pair.first for pair in drawn(open_source(config, NOTHING, held_out))}
    assert texts == {"adds two", "opens it"}
    (tmp_path / "words.jsonl").write_text(
        '{"a": "big", "b": "large", "l": "same"}\n{"a": "open", "b": "close", "l": "different"}\n'
    )
    (tmp_path / "sentences.txt").write_text("open a big file\n")
    sentences = {"source": f"{tmp_path}/words.jsonl", "sentences": (f"{tmp_path}/sentences.txt",)}
    found = drawn(open_source(MeaningSourceConfig(**labelled | sentences), NOTHING, held_out))
    assert {pair.second for pair in found} == {"close a big file"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fields": ("a", "z", "l")}, r'pairs\.jsonl, line 1: expected a text under "z"'),
        ({"same": (), "different": ()}, r"meaning '.*pairs\.jsonl': no pair is left"),
        ({"source": "nothing.txt"}, "no such file"),
    ],
)
def test_invalid_source_is_an_error(labelled, words, options, message):
    with pytest.raises(InputError, match=message):
        open_source(MeaningSourceConfig(**labelled | options), NOTHING, words)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("meaning.pairs=0", "pairs and weight must be positive"),
        ("meaning.sources=[]", "meaning.sources must not be empty"),
        ("meaning.head.width=10", "width must be a multiple of heads"),
        ("meaning.sources=[{source: a, share: 0}]", "share and max_words must be positive"),
        ("meaning.sources=[{source: a, share: 1, sentences: [b]}]", "sentences need pairs of words"),
        ("anchor_weight=-1", "anchor_weight must be positive"),
    ],
)
def test_invalid_config_is_an_error(update_folder, with_head, override, message):
    more = [*with_head, "meaning.head.heads=4"] if "width" in override else with_head
    with pytest.raises(InputError, match=message):
        settings(update_folder, *more, override)


def test_the_head_adds_its_loss(update_folder, with_head):
    both, alone = update(update_folder, World(), *with_head), update(update_folder, World())
    task = ContrastiveTask(settings(update_folder, *with_head), World())
    task.model.eval()
    loss = sum(part()[0] for part in task.meaning.losses(3))
    assert 0.2 < loss.item() < 1  # about 0.5 log 2
    assert both["loss"] > alone["loss"] + 0.1
    assert any(name.startswith("head.") and gradient.any() for name, gradient in both.items())
    assert task.meaning.draw_pairs(3) == task.meaning.draw_pairs(3) != task.meaning.draw_pairs(4)


def test_frozen_encoder_gets_no_gradient_from_the_head(update_folder, with_head):
    task = ContrastiveTask(settings(update_folder, *with_head, "head_only=true"), World())
    sum(part()[0] for part in task.meaning.losses(3)).backward()
    assert all(p.grad is None for p in task.encoder.parameters())
    assert any(p.grad is not None for p in task.meaning.head.parameters())


def test_several_processes_compute_the_same_update(run, update_folder, with_head, tmp_path):
    more = [*with_head, "anchor_weight=1.5", without_dropout(update_folder, tmp_path / "model")]
    whole = update(update_folder, World(), *more)
    (tmp_path / "out").mkdir()
    for result in update_in_processes(run, 2, update_folder, tmp_path / "out", *more):
        assert_equal(result, whole, 5e-6)


def test_run_writes_a_model_with_a_head(update_folder, with_head, tmp_path):
    updates = [f"out={tmp_path}", "updates=3", "warmup_updates=1", "evaluate_every=3"]
    with StopRequest() as stop:
        folder = train(settings(update_folder, *with_head, *updates), World(), stop)
    loaded = saved_model.load(folder)
    assert loaded.info.meaning.head == loaded.head.config
    assert SimLLM(folder).score(["adds two"], ["sums two"]).same.shape == (1,)
    line = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])
    assert {"edits", "same_edits"} <= line.keys()


def test_head_of_the_start_model_is_dropped(update_folder, head_folder, tmp_path):
    """Training changes the encoder, so that the start model's head no longer fits and is not saved."""
    updates = [f"out={tmp_path}", f"model={head_folder}", "updates=2", "warmup_updates=1", "evaluate_every=2"]
    with StopRequest() as stop:
        folder = train(settings(update_folder, *updates), World(), stop)
    assert saved_model.load(folder).head is None
    line = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])
    assert "same_edits" not in line


def test_head_only_training_changes_the_head_and_not_the_encoder(update_folder, with_head, tmp_path):
    options = [*with_head, f"out={tmp_path}", "head_only=true", "updates=2", "warmup_updates=1"]
    config = settings(update_folder, *options, "evaluate_every=2", "learning_rate=0.01")
    model = train(config, World(), StopRequest())
    start, end = (saved_model.load(folder) for folder in (update_folder / "model", model))
    for name, weight in start.encoder.state_dict().items():
        assert torch.equal(weight, end.encoder.state_dict()[name])
    torch.manual_seed(config.seed)
    fresh = type(end.head)(end.head.config, end.encoder.config)
    assert any(
        not torch.equal(a, b)
        for a, b in zip(fresh.state_dict().values(), end.head.state_dict().values(), strict=True)
    )


def test_training_starts_from_the_head_of_the_start_model(update_folder, with_head, tmp_path):
    first = settings(update_folder, *with_head, f"out={tmp_path}", "head_only=true", "updates=1",
                     "warmup_updates=0", "evaluate_every=1", "learning_rate=0.01")  # fmt: skip
    model = train(first, World(), StopRequest())
    task = ContrastiveTask(settings(update_folder, *with_head, f"model={model}"), World())
    for name, value in saved_model.load(model).head.state_dict().items():
        torch.testing.assert_close(task.meaning.head.state_dict()[name], value)


def test_training_can_start_from_the_head_of_another_model(update_folder, with_head, tmp_path):
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
    first = settings(update_folder, *with_head, f"out={tmp_path / 'first'}", "head_only=true", "updates=1",
                     "warmup_updates=0", "evaluate_every=1", "learning_rate=0.01")  # fmt: skip
    other = train(first, World(), StopRequest())
    again = settings(update_folder, *with_head, f"out={tmp_path / 'again'}", f"meaning.start={other}",
                     "head_only=true", "updates=1", "warmup_updates=0", "evaluate_every=1")  # fmt: skip
    task, loaded = ContrastiveTask(again, World()), saved_model.load(other)
    for name, value in loaded.head.state_dict().items():
        torch.testing.assert_close(task.meaning.head.state_dict()[name], value)
    made = saved_model.load(train(again, World(), StopRequest()))
    assert made.info.provenance["head_start"] == loaded.head_hash


def test_a_start_head_that_is_missing_is_an_error(update_folder, with_head):
    config = settings(update_folder, *with_head, f"meaning.start={update_folder / 'model'}")
    with pytest.raises(InputError, match=r"meaning\.start: .*model: a model without a meaning head"):
        ContrastiveTask(config, World())


def test_a_start_head_of_another_shape_is_told(update_folder, with_head, head_folder, tmp_path, capsys):
    other = [override.replace("width: 16", "width: 8") for override in with_head]
    config = settings(update_folder, *other, f"out={tmp_path}", f"model={head_folder}", "head_only=true",
                      "updates=1", "warmup_updates=0", "evaluate_every=1")  # fmt: skip
    train(config, World(), StopRequest())
    assert "meaning head has another shape; the new one starts at random" in capsys.readouterr().err


@pytest.mark.parametrize("override", [["head_only=true"], ["head_only=true", "meaning=null"]])
def test_head_only_without_a_head_is_an_error(update_folder, override):
    with pytest.raises(InputError, match="head_only needs meaning"):
        settings(update_folder, *override)


def test_a_graded_output_is_not_trained_here(update_folder, with_head):
    with pytest.raises(InputError, match=r"meaning\.head\.graded: .* fits .* afterwards"):
        settings(update_folder, *with_head, "meaning.head.graded=true")


def test_training_starts_from_a_graded_head(graded_folder, update_folder, with_head):
    shape = asdict(saved_model.load(graded_folder).head_config) | {"graded": False}
    options = [*with_head, f"meaning.head={json.dumps(shape)}", f"model={graded_folder}", "head_only=true"]
    head = ContrastiveTask(settings(update_folder, *options), World()).meaning.head
    start = saved_model.load(graded_folder).head.state_dict()
    assert not head.config.graded
    for name, weight in head.state_dict().items():
        torch.testing.assert_close(weight, start[name])
