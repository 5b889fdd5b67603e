"""Metrics for code and code edits: reference values, scores of empty texts, and bad input."""

import json
import math
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simllm import metrics
from simllm.code import line_diff
from simllm.code.languages import language as language_module
from simllm.errors import InputError
from simllm.metrics import Example, registry
from simllm.metrics.code import sheikhaei
from simllm.metrics.code.bleu import bleu_of_tokens, count_shared, crystal_bleu, load_shared, save_shared
from simllm.metrics.code.similarity import edits
from simllm.metrics.table import METRICS

SIMILARITIES = [name for name in registry.CODE if not METRICS[name].lower_is_better]
NAMES = {
    "exact_match": "exact-match",
    "token_bleu": "token-bleu",
    "bleu_diff": "bleu-diff",
    "edit_similarity": "edit-similarity",
    "indel_similarity": "edit-similarity=indel",
    "code_chrf": "code-chrf",
    "rps": "rps",
    "rpsr": "rpsr",
    "tree_similarity": "tree-similarity",
}


@pytest.fixture(scope="module")
def vectors(shared):
    return json.loads((shared / "reference" / "code-metrics.json").read_text())


@pytest.fixture(scope="module")
def rows(vectors):
    """Return the examples in the file of reference results, each with the expected values of the metrics."""
    return [
        (Example(row["candidate"], item["reference"], item["source"], item["language"]), row["expected"])
        for item in vectors["items"]
        for row in item["candidates"].values()
    ]


def scores(name, examples):
    return metrics.load(name).score(examples).values


@pytest.mark.parametrize(("key", "name"), NAMES.items())
def test_golden_values(rows, key, name):
    expected = [math.nan if row[key] is None else row[key] for _, row in rows]
    np.testing.assert_allclose(scores(name, [example for example, _ in rows]), expected, atol=1e-6)


@pytest.mark.parametrize(("key", "argument"), [("lemod", ""), ("lemod_multiset", "=multiset")])
def test_golden_values_of_line_edits(rows, key, argument):
    examples, parts = [example for example, _ in rows], ("-precision", "-recall", "")
    found = np.stack([scores(f"lemod{part}{argument}", examples) for part in parts], axis=1)
    np.testing.assert_allclose(found, [row[key] for _, row in rows], atol=1e-6)
    assert all(edits(example).candidate == row["edit"] for example, row in rows)


def test_golden_values_of_crystalbleu(rows, vectors, tmp_path):
    shared = {
        language: [(tuple(ngram), count) for ngram, count in row["ngrams"]]
        for language, row in vectors["shared_ngrams"].items()
    }
    save_shared(tmp_path / "shared.json", shared)
    for key, name in (("crystalbleu", "crystalbleu"), ("crystalbleu_diff", "crystalbleu-diff")):
        found = scores(f"{name}={tmp_path}/shared.json", [example for example, _ in rows])
        np.testing.assert_allclose(found, [row[key] for _, row in rows], atol=1e-6)


def test_shared_ngrams_of_the_reference_vectors(vectors):
    for language, row in vectors["shared_ngrams"].items():
        texts = [item["reference"] for item in vectors["items"] if item["language"] == language]
        found = count_shared(texts, language, row["k"])
        assert [[list(ngram), count] for ngram, count in found] == row["ngrams"]


def test_token_lists_of_the_reference_vectors(vectors):
    for row in vectors["token_lists"]:
        if row["candidate"] and row["reference"] and "==" not in row["candidate"] + row["reference"]:
            candidate, reference = " ".join(row["candidate"]), " ".join(row["reference"])
            ignored = {tuple(ngram) for ngram in row["ignored"]}
            assert crystal_bleu(candidate, reference, ignored) == pytest.approx(row["crystalbleu"], abs=1e-6)
            assert bleu_of_tokens(candidate, reference) == pytest.approx(row["bleu"], abs=1e-6)


def test_figure_3_of_the_paper(rows, shared):
    """The BLEU of the unchanged function, and of a candidate with `os.path.join`, equal those in Figure 3."""
    published = json.loads((shared / "reference" / "code-metrics-published.json").read_text())["figure_3"]
    unchanged, joined = (example for example, _ in rows[:2])
    found = scores("token-bleu", [unchanged, joined])
    assert found.round(3).tolist() == [published["bleu_unchanged"], published["bleu_joined"]]


def test_golden_values_as_published(vectors, shared):
    """The variants `=as-published` give the values of the authors' code, and ignore the same n-grams."""
    rows = [
        (Example(row["candidate"], item["reference"], item["source"], item["language"]), row["as_published"])
        for item in vectors["items"]
        for row in item["candidates"].values()
        if "as_published" in row
    ]
    assert len(rows) > 15
    examples = [example for example, _ in rows]
    names = {"exact-match": "exact_match", "token-bleu": "bleu", "bleu-diff": "bleu_diff"}
    for name, key in names.items():
        np.testing.assert_allclose(
            scores(f"{name}=as-published", examples), [float(row[key]) for _, row in rows], atol=1e-6
        )
    for place, part in enumerate(("-precision", "-recall", "")):
        found = scores(f"lemod{part}=as-published", examples)
        np.testing.assert_allclose(found, [row["lemod"][place] for _, row in rows], atol=1e-6)
    for language, expected in vectors["published_ignored"].items():
        texts = [item["reference"] for item in vectors["items"] if item["language"] == language]
        ignored = sheikhaei.shared_characters(texts)
        assert ignored == {tuple(ngram) for ngram in expected}
        score = partial(sheikhaei.crystal_bleu, shared=ignored)
        for example, row in rows:
            if example.language == language:
                assert sheikhaei.whole_score(example, score) == pytest.approx(row["crystalbleu"], abs=1e-6)
                found = sheikhaei.edit_score(example, score)
                assert found == pytest.approx(row["crystalbleu_diff"], abs=1e-6)
    with pytest.raises(InputError, match="language 'go': the published code handles java and python only"):
        scores("crystalbleu-diff=as-published", [Example("a", "b", "c", "go")])


def test_code_of_replies_as_published(vectors):
    for case in vectors["extraction"]:
        found = sheikhaei.code_of_reply(case["reply"], case["language"])
        assert found == case["as_published"], case["name"]
    longest = "```\n1\n2\n```\n```java\nint f();\n```\n"
    assert sheikhaei.code_of_reply(longest, "java") == "1\n2"
    with pytest.raises(InputError, match="language 'go': the published code handles java and python only"):
        sheikhaei.code_of_reply("a", "go")


SOURCE = "int f(int a) {\n  int b = a;\n  // TODO: halve\n  return b;\n}\n"
FIXED = "int f(int a) {\n  int b = a;\n  return b / 2;\n}\n"


@pytest.mark.parametrize("name", SIMILARITIES)
def test_the_policy_for_empty_texts(name):
    found = scores(
        name,
        [
            Example("", "", "", "java"),
            Example("// none", "// nothing", "int a;", "java"),
            Example("", FIXED, SOURCE, "java"),
            Example("int f(int a) { int b = a; return b/2; }", FIXED, SOURCE, "java"),
        ],
    )
    assert found.tolist() == [1, 1, 0, 1]
    if not METRICS[name].needs_source:  # for others, an empty reference deletes the source
        assert scores(name, [Example(FIXED, "", SOURCE, "java")]).tolist() == [0]


def test_patch_sizes():
    halved, twice = Example(FIXED, FIXED, SOURCE, "java"), Example(SOURCE, FIXED, SOURCE, "java")
    assert scores("rpsr", [halved, twice]).tolist() == [1, 0]
    assert scores("rps", [twice]).tolist() == [0]
    nothing_to_do = metrics.load("rpsr").score([Example(FIXED, SOURCE, SOURCE, "java"), halved])
    assert np.isnan(nothing_to_do.values).tolist() == [True, False]
    assert (nothing_to_do.unscored, nothing_to_do.mean) == (1, 1.0)
    assert math.isnan(metrics.load("rpsr").score([replace(halved, reference=SOURCE)]).mean)


def test_large_trees_get_no_score():
    large = "x = [" + "1, " * 3000 + "]"
    found = metrics.load("tree-similarity").score([Example(large, large + "\ny", None, "python")])
    assert (found.unscored, len(found.values)) == (1, 1)
    assert scores("tree-similarity=9999", [Example(large, large + "\ny", None, "python")])[0] > 0.9


def test_tree_similarity_is_not_negative():
    """The similarity of two trees is 0 if their edit distance exceeds the nodes of the larger tree."""
    pair = Example("a = 1\nprint(b)", "x y\nif a:\n    b = 2", None, "python")
    assert scores("tree-similarity", [pair]).tolist() == [0]


@given(st.sampled_from(SIMILARITIES), st.data())
@settings(max_examples=60)
def test_similarities_are_between_0_and_1_and_1_for_equal_code(name, data):
    lines = st.lists(
        st.sampled_from(["a = 1", "b = f(a)", "if a:\n    b = 2", "print(b)", "x y"]), max_size=5
    )
    candidate, reference, source = ("\n".join(data.draw(lines)) for _ in range(3))
    first, same = scores(
        name, [Example(*texts, source, "python") for texts in ((candidate, reference), (candidate,) * 2)]
    )
    assert 0 <= first <= 1
    assert same == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lemod=x", "metric 'lemod=x': name it as lemod=multiset or lemod"),
        ("rps=many", "metric 'rps=many': name it as rps=NODES or rps"),
        ("exact-match=x", "metric 'exact-match=x': name it as exact-match"),
        ("crystalbleu=none.json", "none.json"),
    ],
)
def test_wrong_argument_is_an_error(name, message):
    with pytest.raises(InputError, match=message):
        metrics.load(name)


def test_missing_parts_of_an_example_are_errors(tmp_path):
    with pytest.raises(InputError, match=r"examples\[0\]: the metric lemod needs a source"):
        scores("lemod", [Example("a", "b", language="java")])
    with pytest.raises(InputError, match=r"examples\[1\]: the metric exact-match needs a language"):
        scores("exact-match", [Example("a", "b", language="java"), Example("a", "b")])
    with pytest.raises(InputError, match="language 'cobol': expected one of"):
        scores("exact-match", [Example("a", "b", language="cobol")])
    save_shared(tmp_path / "go.json", {"go": [(("a",), 1)]})
    with pytest.raises(InputError, match=r"go\.json: has no n-grams of java"):
        scores(f"crystalbleu={tmp_path}/go.json", [Example("a", "b", language="java")])
    with pytest.raises(InputError, match=r"go\.json: has no n-grams of java"):
        metrics.load(f"crystalbleu={tmp_path}/go.json").corpus_value([[Example("a", "b", language="java")]])
    (tmp_path / "wrong.json").write_text('{"shared_ngrams": [1]}')
    with pytest.raises(InputError, match=r"wrong\.json: was not written by `simllm frequencies --ngrams`"):
        load_shared(tmp_path / "wrong.json")


def test_the_registry_knows_the_direction_of_metrics():
    assert registry.lower_is_better("rpsr")
    assert not registry.lower_is_better("lemod=multiset")
    assert not registry.lower_is_better("bleu")
    assert not set(registry.CODE) & set(registry.names())


def test_exact_match_means_1_where_the_source_does_not_parse():
    """A candidate that matches exactly scores 1 in all metrics, even if the source is no valid Python.

    The function in this source has only a comment as its body, so the source does not parse. Without
    parsing, the line break in the candidate would count as an edit.
    """
    source = "def f(a):\n    # TODO: return a list of it\n"
    example = Example("def f(a): return [a,\n  1]\n", "def f(a):\n    return [a, 1]\n", source, "python")
    for name in ("exact-match", "lemod", "bleu-diff", "crystalbleu-diff"):
        assert metrics.load(name).score([example]).values[0] == 1, name


def test_deep_python_as_published():
    example = Example("x = " + "+".join("1" * 2000), "x = 1\n", "x = 2\n", "python")
    for name in ("exact-match", "lemod", "bleu-diff"):
        assert 0 <= metrics.load(f"{name}=as-published").score([example]).values[0] < 1, name


def test_largest_tree_is_at_least_1():
    with pytest.raises(InputError, match="name it as tree-similarity=NODES"):
        metrics.load("tree-similarity=0")


def test_comments_without_end_take_linear_time():
    started = time.process_time()
    code = "int a; /* b */ int c; " + 100_000 * "/* "
    example = Example(code, code.replace(" /* b */", ""), "", "java")
    assert scores("exact-match=as-published", [example]) == [1]
    assert time.process_time() - started < 20


@pytest.mark.parametrize(
    "name", ["exact-match", "lemod", "crystalbleu", "codebleu", "tree-similarity", "rps"]
)
@pytest.mark.filterwarnings("ignore:CrystalBLEU ignores")
def test_code_that_takes_too_long_to_parse_has_no_score(name, monkeypatch):
    monkeypatch.setattr(language_module, "LONGEST_PARSE", 0.2)
    code, hostile = "int f() { return 1; }", "int g() { " + 5_000 * "<!--" + " }"
    examples = [Example(hostile, hostile + ";", code, "java"), Example(code, code, "int f() { }", "java")]
    values = scores(name, examples)
    assert math.isnan(values[0])
    assert math.isfinite(values[1])
    assert metrics.load(name).corpus_value([[one] for one in examples]) is None


@pytest.mark.slow
def test_repeated_lines_are_compared_in_limited_time(monkeypatch):
    monkeypatch.setattr(line_diff, "LONGEST", 0.5)
    started = time.process_time()
    hostile = [f"{n}" if n % 20 == 0 else "}" for n in range(3_000)]
    for source, target in [(["}"] * 5_000, ["}"] * 5_001), (hostile, ["new", *hostile[::-1]])]:
        with pytest.raises(TimeoutError):
            line_diff.line_edit(source, target)
    example = Example("}" * 6_000, "}" * 6_001, "{" + "}" * 6_000, "java")
    assert math.isnan(scores("lemod", [example])[0])
    assert time.process_time() - started < 60
