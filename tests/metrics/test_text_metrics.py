"""Each text metric gives published values, hand-computed values, or those of another library."""

import json
import math
import os
import random
import shutil
import subprocess
import sys

import nltk
import pytest
from nltk.translate import meteor_score as nltk_meteor
from rouge_score import rouge_scorer
from scipy import stats

from simllm import metrics
from simllm.evaluation import ratings
from simllm.metric import default_model
from simllm.metrics.interface import UnavailableError
from simllm.metrics.table import METRICS
from simllm.metrics.text import meteor, words

SAME, OTHER = "returns the first value of the list", "sorts every key by its insertion date"
WITHOUT_ARGUMENT = [
    pytest.param(name, marks=pytest.mark.slow if name == "meteor" else ())  # reading WordNet takes seconds
    for name, spec in METRICS.items()
    if not spec.for_code and not spec.argument
]


def baseline(name, argument=""):
    """Return the scoring function of a text metric, without cache."""
    return METRICS[name].scorer(name, argument)


@pytest.fixture(scope="module")
def haque(real_files):
    return ratings.load(*real_files("rated/haque2022.jsonl"))


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("bleu", "bleu-average"),
        ("bleu-1", "bleu-1gram"),
        ("bleu-2", "bleu-2gram"),
        ("bleu-3", "bleu-3gram"),
        ("bleu-4", "bleu-4gram"),
        ("jaccard", "jaccard_similarity_score"),
        ("tf-idf", "tfidf_cosine"),
    ],
)
def test_values_equal_the_published_column(haque, name, column):
    values = baseline(name)(haque.candidates, haque.references)
    assert values == pytest.approx(haque.columns[column], abs=1e-9)


@pytest.mark.parametrize(
    ("name", "column", "least"),
    [
        ("rouge-l", "rouge-l", 0.999),
        (
            "rouge-1",
            "rouge_score",
            0.998,
        ),  # one pair differs: the published value counts a repeated word once
        ("rouge-w", "rouge-w", 0.99),  # the published value takes no root of precision and recall
    ],
)
def test_ranks_equal_those_of_the_published_column(haque, name, column, least):
    values = baseline(name)(haque.candidates, haque.references)
    assert stats.spearmanr(values, haque.columns[column]).statistic >= least


@pytest.fixture
def wordnet():
    """Return the folder of WordNet 3.0, which Debian and nltk's downloader provide, but no Python package."""
    try:
        return meteor.open_wordnet()
    except UnavailableError as error:
        pytest.skip(str(error))


def write_wordnet(folder):
    """Write a WordNet with one noun synset: sofa and couch."""
    folder.mkdir(parents=True)
    for part in ("noun", "verb", "adj", "adv"):
        for name in (f"index.{part}", f"data.{part}", f"{part}.exc"):
            (folder / name).touch()
    (folder / "data.noun").write_text("00000000 06 n 02 sofa 0 couch 0 000 | a soft seat  \n")
    (folder / "index.noun").write_text(
        "".join(f"{word} n 1 0 1 0 00000000  \n" for word in ("couch", "sofa"))
    )


@pytest.mark.parametrize("archive", [False, True])
def test_meteor_by_hand_with_nltk_wordnet(tmp_path, monkeypatch, archive):
    """Two words that match in one chunk score 1 - 0.5 (1/2)^3; WordNet may be a folder or an archive."""
    write_wordnet(tmp_path / "corpora" / "wordnet")
    if archive:
        shutil.make_archive(tmp_path / "corpora" / "wordnet", "zip", tmp_path / "corpora", "wordnet")
        shutil.rmtree(tmp_path / "corpora" / "wordnet")
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    scores = baseline("meteor")(["a sofa", "a chair"], ["a couch", "a couch"])
    assert scores == pytest.approx([1 - 0.5 / 8, 0.5 * 0.5])
    assert baseline("meteor").data["wordnet"].is_relative_to(tmp_path)


def test_meteor_without_wordnet_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    monkeypatch.setattr(meteor, "_SYSTEM", tmp_path)
    with pytest.raises(
        UnavailableError, match=r"needs the data of WordNet 3\.0.*apt-get install wordnet-base"
    ):
        baseline("meteor")


@pytest.mark.slow
@pytest.mark.usefixtures("wordnet")
def test_meteor_equals_the_published_column_except_for_a_bug_of_nltk(haque, monkeypatch):
    """nltk 3.6 matched words with equal stems a second time, as synonyms; so published scores reach 1.018."""
    column = haque.columns["meteor_score"]
    assert column.max() > 1
    values = baseline("meteor")(haque.candidates, haque.references)
    assert stats.spearmanr(values, column).statistic > 0.989
    stems = nltk_meteor._enum_stem_match

    def without_taking_away(candidate, reference, stemmer):
        return stems(list(candidate), list(reference), stemmer)[0], candidate, reference

    monkeypatch.setattr(nltk_meteor, "_enum_stem_match", without_taking_away)
    assert baseline("meteor")(haque.candidates, haque.references) == pytest.approx(column, abs=1e-9)


def test_rouge_w_by_hand():
    """Two candidates of Lin (2004), section 4, with f(k) = k^2, have an F1 of sqrt(16) / 7 and sqrt(4) / 7.

    16 and 4 are the weighted lengths of their common subsequences with the reference of 7 words.
    """
    reference = list("ABCDEFG")
    assert words.rouge_w(list("ABCDHIK"), reference, weight=2) == pytest.approx(0.571, abs=5e-4)
    assert words.rouge_w(list("AHBKCID"), reference, weight=2) == pytest.approx(0.286, abs=5e-4)


def test_chrf_by_hand():
    """The texts "abcd" and "abce" share 3 of 4 unigrams, 2 of 3 bigrams, 1 of 2 trigrams, and no 4-gram."""
    mean = (3 / 4 + 2 / 3 + 1 / 2 + 0) / 4
    assert baseline("chrf")(["abcd"], ["abce"]) == pytest.approx([mean], abs=1e-9)


@pytest.mark.parametrize("name", WITHOUT_ARGUMENT)
def test_equal_empty_and_unrelated_texts(name, request):
    if name == "meteor":
        request.getfixturevalue("wordnet")
    same, empty, other, both_empty = baseline(name)([SAME, "", OTHER, ""], [SAME, SAME, SAME, ""])
    assert both_empty == 1
    assert same == pytest.approx(1, abs=2e-3)  # METEOR's highest score is just below 1
    assert empty == pytest.approx(0)
    assert other < 0.3


def test_word_vectors_of_words_in_the_same_contexts_are_similar(tmp_path):
    lines = [
        f"{verb} the {noun}" for verb in ("gets", "returns") for noun in "name size list value key".split()
    ]
    lines += [f"draws a {noun}" for noun in "circle line shape".split()]
    plain, objects = tmp_path / "corpus.txt", tmp_path / "corpus.jsonl"
    plain.write_text("\n".join(lines * 20))
    objects.write_text("\n".join(json.dumps({"text": line}) for line in lines * 20))
    pairs = (["gets", "draws", ""], ["returns", "returns", "returns"])
    synonym, other, empty = baseline("word-vectors", str(plain))(*pairs)
    assert synonym > 0.8 > 0.3 > other
    assert empty == 0
    assert baseline("word-vectors", str(objects))(*pairs) == pytest.approx([synonym, other, empty])


@pytest.mark.slow
def test_sentence_bert_and_bertscore_from_a_model_folder():
    pairs = (["adds two lists", "paints a circle"], ["adds two lists", "adds two lists"])
    for name in ("sentence-bert", "bertscore"):
        same, other = baseline(name, str(default_model()))(*pairs)
        assert same == pytest.approx(1, abs=1e-5)
        assert other < 0.9


def test_nli_is_the_mean_of_both_directions(nli_folder, tmp_path):
    pairs = (["adds lists", "adds two lists", "adds"], ["sums arrays", "adds lists", "sums all lists"])
    likely = 1 / (1 + math.exp(-10))
    values = baseline("nli", str(nli_folder))(*pairs)
    assert values == pytest.approx([likely, likely / 2, likely / 2], abs=1e-6)
    other = shutil.copytree(nli_folder, tmp_path / "other")
    (other / "config.json").write_text('{"id2label": {"0": "NOT_ENTAILMENT", "1": "ENTAILMENT"}}')
    assert baseline("nli", str(other))(*pairs) == pytest.approx(1 - values, abs=1e-6)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("second.onnx", "", "model: expected a folder with one ONNX file and one tokenizer.json"),
        ("nli.onnx", "damaged", "model: cannot be loaded"),
        ("tokenizer/tokenizer.json", "{}", "model: cannot be loaded"),
        ("config.json", '{"id2label": {"0": "good"}}', r"model: cannot be loaded \('entailment'\)"),
        ("config.json", '{"auto_map": {}}', r"config.json: names code to run \(auto_map\)"),
    ],
)
def test_folders_without_a_usable_nli_model_are_refused(nli_folder, tmp_path, file, content, message):
    folder = shutil.copytree(nli_folder, tmp_path / "model")
    (folder / file).write_text(content)
    with pytest.raises(UnavailableError, match=message):
        baseline("nli", str(folder))


@pytest.mark.slow
def test_a_description_of_training_data_in_a_model_folder_is_ignored(tmp_path):
    """all-MiniLM-L6-v2 has one; it is a list."""
    folder = shutil.copytree(default_model(), tmp_path / "model")
    (folder / "data_config.json").write_text('[{"name": "pairs.jsonl.gz", "lines": 3}]')
    same = baseline("sentence-bert", str(folder))(["adds two lists"], ["adds two lists"])
    assert same == pytest.approx([1], abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sentence-bert", "bertscore"])
def test_no_code_of_a_model_folder_is_run(tmp_path, name):
    """A folder may name a Python file as the class of its model or of its tokenizer; it is refused."""
    folder = tmp_path / "model"
    shutil.copytree(default_model(), folder)
    (folder / "mine.py").write_text("open('ran', 'w')\nclass Mine: pass\n")
    for file, key in (("config.json", "AutoModel"), ("tokenizer_config.json", "AutoTokenizer")):
        original = (folder / file).read_text()
        (folder / file).write_text(json.dumps({**json.loads(original), "auto_map": {key: "mine.Mine"}}))
        with pytest.raises(UnavailableError, match=rf"{file}: names code to run \(auto_map\)"):
            baseline(name, str(folder))
        (folder / file).write_text(original)
    if name == "sentence-bert":
        modules = json.loads((folder / "modules.json").read_text())
        (folder / "modules.json").write_text(json.dumps([{**modules[0], "type": "mine.Mine"}]))
    else:
        (folder / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(UnavailableError, match="model: cannot be loaded"):
        baseline(name, str(folder))
    assert not list(tmp_path.rglob("ran"))


@pytest.mark.slow
def test_signature_of_a_downloaded_model_depends_on_its_content(tmp_path):
    """Two versions of a downloaded model have the same name, but different signatures."""
    code = """
import pathlib, sys
from simllm import metrics
for revision in sys.argv[2:]:
    pathlib.Path(sys.argv[1]).write_text(revision)
    print(metrics.load("sentence-bert=a/b").signature)
"""
    place = tmp_path / "models--a--b"
    (place / "refs").mkdir(parents=True)
    revisions = ("1" * 40, "2" * 40)
    for revision in revisions:
        shutil.copytree(default_model(), place / "snapshots" / revision)
        (place / "snapshots" / revision / "README.md").write_text(revision)
    done = subprocess.run(
        [sys.executable, "-c", code, place / "refs" / "main", *revisions],
        env={**os.environ, "HF_HUB_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    signatures = done.stdout.splitlines()
    assert signatures[0].startswith("sentence-bert|model:")
    assert signatures[0] != signatures[1]


@pytest.mark.parametrize(
    ("name", "argument", "remedy"),
    [
        ("word-vectors", "", "name it as word-vectors=CORPUS"),
        ("bleu", "x", "name it as bleu alone"),
        ("word-vectors", "none.txt", "none.txt: no such file; expected one text per line"),
        pytest.param(
            "sentence-bert",
            "no/model",
            r"no/model: not a model folder, nor downloaded \(hf download no/model\)",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "bertscore", "no/model", "no/model: no folder of a transformers model", marks=pytest.mark.slow
        ),
    ],
)
def test_error_about_missing_metrics_names_the_remedy(name, argument, remedy):
    with pytest.raises(UnavailableError, match=remedy):
        metrics.load(f"{name}={argument}")


def test_the_longest_common_subsequence_is_that_of_rouge_score():
    draw = random.Random(0)
    for _ in range(500):
        a, b = (draw.choices("abcde", k=draw.randrange(1, 90)) for _ in range(2))
        table = rouge_scorer._lcs_table(a, b)
        assert words.lcs_length(a, b) == table[-1][-1]


@pytest.mark.slow
def test_long_texts_take_little_memory():
    """A table of all pairs of 20,000 words would take gigabytes."""
    script = "import resource; from simllm.metrics.text import words\n"
    script += "resource.setrlimit(resource.RLIMIT_DATA, (1 << 30,) * 2)\n"
    script += "print(words.load_rouge('rougeL')(['a b c ' * 20_000], ['b a c ' * 20_000])[0].round(3))\n"
    script += "print(round(words.load_rouge_w()(['a ' * 20_000], ['a b ' * 50])[0], 5) > 0)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("0.667\nTrue\n", "")
