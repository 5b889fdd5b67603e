import json
import shutil
import signal
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from simllm import SimLLM
from simllm.errors import InputError
from simllm.evaluation import ratings
from simllm.perturb.summaries import lexicon
from simllm.text_cleaning import clean
from tests.conftest import ROOT
from tests.train.training_processes import assert_same_weights, log
from train.contrastive.batches import PositiveSource, RatedSource, draw_pairs
from train.contrastive.config import ContrastiveConfig, PositivesConfig, RatedPairsConfig
from train.corpus.decontaminate import ExcludedTexts
from train.runtime.config import load

LEXICON = lexicon.load()


@pytest.fixture
def views(comments, tmp_path):
    file = tmp_path / "train.txt"
    file.write_text("".join(text + "\n" for text in sorted({clean(comment) for comment in comments})))
    return PositivesConfig(source=str(file), share=3.0, word_dropout=0.3, fields=())


@pytest.fixture
def pairs(tmp_path):
    rows = [("adds two lists", "combines 2 arrays", "g"), ("gets it", "sets it", "h"), ("a b", "a b", "i")]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(dict(zip("abg", row, strict=True))) + "\n" for row in rows))
    return PositivesConfig(source=str(file), share=1.0, max_overlap=0.9)


def test_drawn_pairs_follow_the_shares_and_depend_on_seed_and_update(views, pairs):
    sources = [
        PositiveSource(views, ExcludedTexts([]), LEXICON),
        PositiveSource(pairs, ExcludedTexts([]), LEXICON),
    ]
    drawn = draw_pairs(sources, 2000, seed=1, update=5)
    assert drawn == draw_pairs(sources, 2000, seed=1, update=5) != draw_pairs(sources, 2000, seed=1, update=6)
    given = sum(not {"adds two lists", "gets it"}.isdisjoint((pair.first, pair.second)) for pair in drawn)
    assert given / 2000 == pytest.approx(0.25, abs=0.03)
    assert all(pair.first and pair.second for pair in drawn)
    assert np.mean([pair.first != pair.second for pair in drawn]) > 0.8


def test_views_drop_the_configured_share_of_words(views):
    source = PositiveSource(views, ExcludedTexts([]), LEXICON)
    random = np.random.default_rng(0)
    drawn = [source.draw(random) for _ in range(3000)]
    mean = np.mean([len(text.split()) for text in source.texts])
    assert np.mean([len(pair.first.split()) for pair in drawn]) / mean == pytest.approx(0.7, abs=0.06)


def test_pairs_are_filtered_by_overlap_and_against_rated_texts(pairs):
    assert len(PositiveSource(pairs, ExcludedTexts([]), LEXICON).pairs) == 2
    assert len(PositiveSource(pairs, ExcludedTexts(["sets it"]), LEXICON).pairs) == 1
    with pytest.raises(InputError, match="no pair is left"):
        PositiveSource(pairs, ExcludedTexts(["sets it", "adds two lists"]), LEXICON)


def test_source_without_the_expected_fields_is_an_error(pairs):
    config = PositivesConfig(source=pairs.source, share=1.0, fields=("a", "c"))
    with pytest.raises(InputError, match=r'pairs\.jsonl, line 1: expected a text under "c"'):
        PositiveSource(config, ExcludedTexts([]), LEXICON)


def test_excluded_texts_are_never_drawn(tmp_path):
    (tmp_path / "train.txt").write_text("adds two lists of numbers\nsets the name of it\n")
    config = PositivesConfig(source=str(tmp_path / "train.txt"), share=1.0, fields=())
    source = PositiveSource(config, ExcludedTexts(["adds two lists of numbers"]), LEXICON)
    random = np.random.default_rng(0)
    assert {source.draw(random).first for _ in range(50)} == {"sets the name of it"}
    excluded = PositiveSource(
        config, ExcludedTexts(["adds two lists of numbers", "sets the name of it"]), LEXICON
    )
    with pytest.raises(InputError, match="a hundred texts in a row are excluded"):
        excluded.draw(random)


def test_rewordings_get_meaning_changes_as_hard_negatives(views):
    config = replace(views, word_dropout=0.0, rewording=True, hard_negatives=2, max_words=20)
    source = PositiveSource(config, ExcludedTexts([]), LEXICON)
    random = np.random.default_rng(0)
    drawn = [source.draw(random) for _ in range(300)]
    assert max(pair.first.count(" ") for pair in drawn) < 20
    assert np.mean([pair.first != pair.second for pair in drawn]) > 0.8
    assert np.mean([len(pair.negatives) == 2 for pair in drawn]) > 0.7
    assert not any(pair.first in pair.negatives for pair in drawn)


def test_hard_negative_belongs_to_the_first_text_of_its_pair(tmp_path):
    rows = [{"a": "open", "b": "unlock", "c": "close"}, {"a": "send", "b": "transmit"}]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = PositivesConfig(source=str(tmp_path / "pairs.jsonl"), share=1.0, fields=("a", "b", "c"))
    source, random = PositiveSource(config, ExcludedTexts([]), LEXICON), np.random.default_rng(0)
    drawn = {(pair.first, pair.second, pair.negatives) for pair in (source.draw(random) for _ in range(100))}
    assert drawn == {("open", "unlock", ("close",)), ("send", "transmit", ()), ("transmit", "send", ())}


@pytest.fixture
def rated_file(comments, tmp_path):
    """Write comment pairs, rated by their word overlap."""
    file = tmp_path / "rated.jsonl"
    texts = [clean(text) for text in comments[:120]]
    with file.open("w") as out:
        for a, b in zip(texts, texts[1:] + texts[:1], strict=True):
            words = set(a.split()), set(b.split())
            rating = len(words[0] & words[1]) / len(words[0] | words[1])
            out.write(json.dumps({"reference": a, "candidate": b, "rating": rating}) + "\n")
    return file


def test_drawn_rated_pairs_depend_on_seed_and_update(rated_file, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_text(
        "".join(json.dumps({"reference": "a b", "candidate": f"a {i}", "rating": i}) + "\n" for i in range(5))
    )
    fields = ("reference", "candidate", "rating")
    config = RatedPairsConfig(sources=(str(rated_file), str(other)), fields=fields, pairs=400, weight=1.0)
    source = RatedSource(config, ExcludedTexts(["a 3"]))
    drawn, again, later = source.draw(1, 2), source.draw(1, 2), source.draw(1, 3)
    assert drawn.first == again.first != later.first
    assert (drawn.ratings == again.ratings).all()
    assert [s for s, text in zip(drawn.sets, drawn.first, strict=True) if text == "a b"].count(1) > 0
    assert {int(s) for s, text in zip(drawn.sets, drawn.first, strict=True) if text != "a b"} == {0}
    assert "a 3" not in drawn.second


def test_the_shipped_config_loads():
    recipe = ROOT / "configs" / "contrastive.yaml"
    config = load(ContrastiveConfig, recipe, [])
    assert sum(source.share for source in config.positives) == pytest.approx(1)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("positives=[{source: a, share: 0}]", r"positives\[0\]: share and max_words must be positive, hard"),
        ("positives=[{source: a, share: 1, fields: [a]}]", "must name two or three fields or none, not 1"),
        (
            "rated=[{sources: [a], fields: [a, b], pairs: 1, weight: 1}]",
            r"rated\[0\]: fields must name three fields",
        ),
        ("hard_negative_weight=0", "hard_negative_weight must be positive"),
        ("positives=[]", "positives must not be empty"),
    ],
)
def test_invalid_config_is_an_error(override, message):
    with pytest.raises(InputError, match=message):
        load(ContrastiveConfig, ROOT / "configs" / "contrastive.yaml", [override])


@pytest.fixture
def short_comments(comments, tmp_path):
    """Write a file of short comments."""
    file = tmp_path / "few.txt"
    texts = sorted({text for text in map(clean, comments) if 4 <= len(text.split()) < 10})
    file.write_text("".join(text + "\n" for text in texts[:200]))
    return file


def arguments(out, model_folder, texts, rated, *more):
    source = f"source: {texts}, share: 1, fields: []"
    return [
        "configs/contrastive.yaml",
        f"out={out}",
        f"model={model_folder}",
        f"dev=[{rated}]",
        f"positives=[{{{source}, word_dropout: 0.2}}, {{{source}, rewording: true, hard_negatives: 2}}]",
        f"rated=[{{sources: [{rated}], fields: [reference, candidate, rating], pairs: 16, weight: 0.1}}]",
        f"overlap={{source: {rated}, fields: [reference, candidate], pairs: 16, weight: 0.1}}",
        f"dev_comments={texts}",
        *("exclude=[]", "pairs=32", "updates=20", "warmup_updates=2", "evaluate_every=10"),
        "learning_rate=4e-3",
        "precision=fp32",
        *more,
    ]


@pytest.mark.slow
def test_run_learns_and_resumes(run, model_folder, short_comments, rated_file, tmp_path):
    """A run keeps its best model; a run that is stopped and resumed ends with the same weights."""
    whole, stopped_run = (
        arguments(tmp_path / name, model_folder, short_comments, rated_file) for name in ("a", "b")
    )
    status, errors = run("train.contrastive", *whole)
    assert status == 0, errors
    lines = log(tmp_path / "a")
    assert [line["update"] for line in lines] == [10, 20]
    assert lines[-1]["train_loss"] < 0.9 * lines[0]["train_loss"]
    assert {"spearman_rated", "contrast_balanced", "contrast_adversarial"} <= lines[0].keys()
    info = json.loads((tmp_path / "a" / "model" / "simllm.json").read_text())
    best = max((line["spearman_rated"] + line["edits"]) / 2 for line in lines)
    assert info["provenance"]["dev_criterion"] == pytest.approx(best, abs=1e-4)
    before, after = SimLLM(model_folder), SimLLM(tmp_path / "a" / "model")
    assert info["provenance"]["start"]["hash"] == before.model.hash
    rated = ratings.load(rated_file)
    values = after.score(rated.candidates, rated.references).values
    found = spearmanr(values, rated.values).statistic
    (kept,) = [line for line in lines if line["update"] == info["provenance"]["updates"]]
    assert found == pytest.approx(kept["spearman_rated"], abs=1e-4)

    started = run.start("train.contrastive", *stopped_run, pause_at="update 10 ")
    started.signal(signal.SIGTERM)
    assert started.finish() == 75
    status, errors = run("train.contrastive", *stopped_run)
    assert status == 0
    assert "resuming after update" in errors
    assert_same_weights(tmp_path / "a", tmp_path / "b")


@pytest.mark.slow
def test_a_stopped_run_with_imitation_resumes(
    run, model_folder, short_comments, rated_file, tmp_path, teachers
):
    """The embeddings of the teachers are not computed again, and the weights are those of a whole run."""
    imitation = (
        f"imitation={{texts: [{{source: {short_comments}}}], max_texts: 200, teachers: [{teachers['bert']}], "
        "groups: 12, cosine_weight: 4, similarity_weight: 2}"
    )
    losses = ("info_nce_weight=0", "triplet_weight=1")
    whole, stopped_run = (
        arguments(tmp_path / name, model_folder, short_comments, rated_file, imitation, *losses)
        for name in ("a", "b")
    )
    status, errors = run("train.contrastive", *whole)
    assert status == 0, errors
    assert "bert: shard 1 of 1" in errors
    started = run.start("train.contrastive", *stopped_run, pause_at="update 10 ")
    started.signal(signal.SIGTERM)
    assert started.finish() == 75
    status, errors = run("train.contrastive", *stopped_run)
    assert status == 0, errors
    assert "resuming after update" in errors
    assert "shard" not in errors
    assert_same_weights(tmp_path / "a", tmp_path / "b")


@pytest.mark.slow
def test_a_run_whose_inputs_changed_is_not_resumed(run, model_folder, short_comments, rated_file, tmp_path):
    model = shutil.copytree(model_folder, tmp_path / "model")
    one_update = ("updates=1", "warmup_updates=1", "pairs=8")
    resumable_run = arguments(tmp_path / "run", model, short_comments, rated_file, *one_update)
    status, errors = run("train.contrastive", *resumable_run)
    assert status == 0, errors
    info = json.loads((model / "simllm.json").read_text()) | {"pooling": "max"}
    tokenizer = (model / "tokenizer.json").read_text(encoding="utf-8").replace('"always"', '"first"')
    changes = {
        short_comments: short_comments.read_text() + "adds a line\n",
        model / "simllm.json": json.dumps(info),
        model / "tokenizer.json": tokenizer,
    }
    for file, changed in changes.items():
        before = file.read_text(encoding="utf-8")
        file.write_text(changed, encoding="utf-8")
        status, errors = run("train.contrastive", *resumable_run)
        assert status == 2, file
        assert errors.endswith("saved under another configuration; choose another `out`\n")
        file.write_text(before, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("with_texts", [[], [0]], ids=["no process has", "the first process has"])
def test_missing_texts_stop_all_processes_with_one_error(
    run, model_folder, short_comments, rated_file, tmp_path, with_texts
):
    """The processes read the texts at the same time; here, each process has a working folder of its own."""
    folders = [tmp_path / "one", tmp_path / "other"]
    for number, folder in enumerate(folders):
        folder.mkdir()
        if number in with_texts:
            shutil.copy(short_comments, folder / "texts.txt")
    config, *overrides = arguments(tmp_path / "run", model_folder, "texts.txt", rated_file)
    overrides[overrides.index("dev_comments=texts.txt")] = f"dev_comments={short_comments}"
    ranks = run.ranks(2, "train.contrastive", ROOT / config, *overrides, folders=folders)
    assert [rank.finish() for rank in ranks] == [2, 2]
    errors = ranks[0].errors + ranks[1].errors
    assert errors.count("error: ") == 1
    assert "texts.txt" in errors
    assert "Traceback" not in errors
