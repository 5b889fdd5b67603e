"""One policy for empty and unreadable texts in every metric, and the warnings that count such pairs."""

import json
import warnings

import numpy as np
import pytest
from nltk.translate.bleu_score import sentence_bleu
from scipy import stats

from simllm import metrics
from simllm.evaluation import ratings
from simllm.evaluation.correlation import clean_ratings
from simllm.metrics import Example, registry
from simllm.metrics.interface import UnavailableError, pair_scores
from simllm.metrics.table import METRICS
from tests.command import run

# For each text metric, a text that is not empty, but that the metric cannot read, and another one.
UNREADABLE = {
    "simllm": ("ключ", "значение"),
    "simllm-same": ("ключ", "значение"),
    "bleu": ("sorts all keys", "sorts all values"),
    "bleu-2": ("sorts", "orders"),
    "bleu-3": ("sorts keys", "orders keys"),
    "bleu-4": ("sorts all keys", "sorts all values"),
    "rouge-1": ("ключ", "значение"),
    "rouge-2": ("sorts", "orders"),
    "rouge-l": ("ключ", "значение"),
    "rouge-w": ("ключ", "значение"),
    "tf-idf": ("x y", "a b"),
}
JAVA = "int next(int n) { return n + 1; }", "void stop() { running = false; }"
SMALLER_IS_BETTER = {"rps", "rpsr"}  # sizes of patches, not similarities
SLOW = {"meteor", "sentence-bert", "bertscore"}


TEXT_METRICS = [
    pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in registry.names()
]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def load(tmp_path, head_folder, nli_folder):
    """Return a function that loads a text metric, with an argument if it needs one."""

    def load_metric(name):
        argument = METRICS[name].argument if name in METRICS else ""
        corpus = tmp_path / "corpus.txt"
        lines = (f"{verb} the {noun} of a list" for verb in ("sorts", "gets") for noun in ("keys", "name"))
        corpus.write_text("\n".join(lines))
        value = {"": "", "CORPUS": f"={corpus}", "MODEL": f"={head_folder}"}[argument]
        if name == "nli":
            value = f"={nli_folder}"
        try:
            return metrics.load(name + value, head_folder)
        except UnavailableError as error:
            pytest.skip(str(error))

    return load_metric


@pytest.mark.parametrize("name", TEXT_METRICS)
def test_empty_and_equal_texts_of_every_text_metric(name, load):
    full = "sorts the keys of a list"
    pairs = [("", ""), (" \t", "\n"), ("", full), (full, ""), (full, full), (full, f" {full}\n")]
    unreadable = UNREADABLE.get(name)
    if unreadable:
        pairs += [(unreadable[0],) * 2, unreadable]
    metric = load(name)
    for _ in range(2):  # the second time, scores and warnings come from the cache
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scores = metric.score([Example(*pair) for pair in pairs])
        assert scores.values[:4].tolist() == [1, 1, 0, 0]
        assert scores.values[4:6] == pytest.approx(1, abs=0.01)  # METEOR's highest score is just below 1
        if unreadable:
            assert scores.values[6] == 1
            assert scores.values[7] == pytest.approx(0, abs=1e-30)
        message = f"{6 if unreadable else 4} of {len(pairs)} pairs have a text "
        assert [text for text in scores.warnings if message in text]
        assert {str(one.message) for one in caught} >= set(scores.warnings)


@pytest.mark.parametrize("name", TEXT_METRICS)
@pytest.mark.filterwarnings("ignore")
def test_scores_do_not_depend_on_other_pairs(name, load):
    pairs = [("sorts the keys", "sorts the names"), ("gets a list of keys", "gets the list"), ("a b", "c d")]
    metric = load(name)
    together = metric.score([Example(*pair) for pair in pairs]).values
    alone = [metric.score([Example(*pair)]).values[0] for pair in pairs]
    assert together == pytest.approx(alone, abs=1e-5)


@pytest.mark.parametrize("name", sorted(set(registry.CODE) - SMALLER_IS_BETTER))
@pytest.mark.filterwarnings("ignore:CrystalBLEU ignores")
def test_empty_and_equal_code_of_every_code_metric(name):
    code, other = JAVA
    pairs = [("", ""), ("// note", "/* remark */"), ("", code), ("// note", code), (code, code), ("i;", "i;")]
    scores = metrics.load(name).score([Example(*pair, source=other, language="java") for pair in pairs])
    assert scores.values.tolist() == [1, 1, 0, 0, 1, 1]


def test_signatures_name_the_policy(load):
    for name in (set(registry.names()) & METRICS.keys()) - SLOW:
        assert "|unread:equal|" in load(name).signature


def test_short_texts_are_readable_for_smoothed_bleu():
    """Sentence BLEU of sacrebleu: precisions up to the candidate's length, and the brevity penalty."""
    metric = metrics.load("bleu-smoothed")
    values = pair_scores(
        metric, ["sorts keys", "sorts keys", "sorts"], ["sorts keys", "keys", "sorts the keys"]
    )
    assert values == pytest.approx([1, np.sqrt(1 / 2 * 1 / 2), np.exp(1 - 3)], abs=1e-9)
    assert metric.score([Example("sorts keys", "sorts keys")]).warnings == ()


def test_bleu_keeps_the_published_ranks(real_files):
    """With zero in place of nltk's tiny numbers, the correlation on published pairs would be .53, not .73."""
    rated = clean_ratings(ratings.load(*real_files("rated/haque2022.jsonl")))
    with pytest.warns(UserWarning, match="bleu: 154 of 210 pairs share no 4 consecutive words"):
        values = pair_scores(metrics.load("bleu"), rated.candidates, rated.references)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs = zip(rated.candidates, rated.references, strict=True)
        raw = [sentence_bleu([b.split()], a.split()) for a, b in pairs]
    rho = stats.spearmanr(values, rated.values).statistic
    assert rho == pytest.approx(stats.spearmanr(raw, rated.values).statistic, abs=1e-3)
    assert rho == pytest.approx(0.733, abs=5e-4)


def test_the_command_shows_zero_for_bleu_without_a_common_phrase(tmp_path):
    (tmp_path / "c").write_text("removes each key of the map\nopens file\n")
    (tmp_path / "r").write_text("clears the map of all keys\nopens file\n")
    for form in ("json", "text", "tsv"):
        done = run("score", "-c", "c", "-r", "r", "--metrics", "bleu", "-f", form, cwd=tmp_path)
        shared = "bleu: 1 of 2 pairs share no 4 consecutive words, so their BLEU is 0; bleu-smoothed tells"
        short = "bleu: 1 of 2 pairs have a text of fewer than 4 words; they score 1 if both texts are equal"
        assert shared in done.stderr
        assert short in done.stderr
        if form == "json":
            result = json.loads(done.stdout)
            assert [row["bleu"] for row in result["rows"]] == [0, 1]
            assert [text.partition(";")[0] for text in result["warnings"]] == [
                short.partition(";")[0],
                shared.partition(";")[0],
            ]
        elif form == "text":
            assert f"warnings: {shared}" in done.stdout
        else:
            assert done.stdout.splitlines()[1].startswith("0\t")
