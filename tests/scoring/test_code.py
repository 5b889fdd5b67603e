"""Scores of summaries against code: words of code in all languages, contracts of the scores, the metrics."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm import SimLLM
from simllm.errors import InputError
from simllm.metrics import registry
from simllm.metrics.interface import Example, UnavailableError
from simllm.scoring.code import REFERENCE_WORDS, CodePair, words
from simllm.scoring.sentences import ALLOWANCE
from tests.conftest import ROOT

JAVA = "int maxOf(int a, int b) { return a >= b ? a : b; }"
FITTING, OTHER = "Returns the larger of two numbers.", "Opens a connection to the database."


@pytest.mark.parametrize(
    ("code", "language", "expected"),
    [
        ('def f(x):\n    """Doc."""\n    return "a#b"  # why', "python", "def f x return a b"),
        ("def f(\n    x,\n):  # c\n\n    'Doc.'\n    return x", "python", "def f x return x"),
        ('def f(x):\n    s = """not # doc"""\n    return s', "python", "def f x s not doc return s"),
        ("/** Doc. */\nHTTPServer2 f(URI u) { return u; } // c", "java", "http server 2 f uri u return u"),
        ('String s = "http://x"; /* open', "java", "string s http x"),
        ("f(): string { return `a // b` }", "typescript", "f string return a b"),
        ("if a_b != nil && !ok { a->b() }", "go", "if a b != nil && ! ok a b"),
        ("=begin\nDoc\n=end\ndef f; 1.5 end # c", "ruby", "def f 1.5 end"),
        ("#[Pure] function f($a) { return $a * 2; } # c", "php", "pure function f a return a * 2"),
        ("#include <x.h>\n# comment\nx = y // c", None, "include x h x y"),
        ("List<String> a = b;", "java", "list string a b"),
        ("größe = naïveWert", "python", "größe naïve wert"),
        ("", "java", ""),
    ],
)
def test_words_of_code(code, language, expected):
    assert words(code, language) == expected


@given(st.text(max_size=300), st.sampled_from([None, "python", "java", "ruby", "php", "cobol"]))
def test_words_of_any_text_are_lower_case_and_stay_the_same(code, language):
    found = words(code, language)
    assert found == found.lower()
    assert not set("(){};,\n\"'") & set(found)


def test_words_of_hostile_code_take_linear_time():
    for code in ("/*" * 50_000, '"' * 100_000, "def f:\n" * 20_000, "#\n" * 50_000, "A" * 100_000):
        for language in ("python", "java", "ruby", "php", None):
            assert len(words(code, language)) <= 100_000


@pytest.fixture(scope="module")
def metric():
    return SimLLM()


def test_a_fitting_summary_scores_higher_without_a_reference(metric):
    examples = [Example(text, None, JAVA, "java") for text in (FITTING, OTHER)]
    scores = metric.score(examples)
    assert scores.values[0] > scores.values[1] + 0.1
    assert "against:code" in scores.signature
    assert scores.same is None


def test_scores_do_not_depend_on_the_other_pairs(metric):
    examples = [Example(text, None, JAVA * n, "java") for n in (1, 2) for text in (FITTING, OTHER)]
    together = metric.score(examples).values
    alone = [metric.score([example]).values[0] for example in examples]
    assert np.allclose(together, alone, atol=1e-5)


def test_pairs_without_words_score_0_and_are_counted(metric):
    examples = [Example("", None, JAVA, "java"), Example(FITTING, None, "/* only a comment */", "java")]
    with pytest.warns(UserWarning, match="2 of 2 pairs have a code or summary without words"):
        scores = metric.score(examples)
    assert scores.values.tolist() == [0, 0]
    assert scores.empty == 2


def test_long_code_is_cut_and_counted(metric):
    with pytest.warns(UserWarning, match="1 of 2 texts cut at 256 tokens"):
        assert metric.score([Example(FITTING, None, JAVA * 50, "java")]).truncated == 1


def test_clauses_of_a_long_summary_are_compared_one_by_one(metric):
    texts = [FITTING, OTHER, f"{FITTING} {OTHER}", f"{FITTING} {FITTING}"]
    scores = metric.code_reader.score([CodePair(JAVA, text, "java") for text in texts])
    first, second, mixed, twice = scores.cosines
    price = (REFERENCE_WORDS + ALLOWANCE) / (12 + ALLOWANCE)  # both have twelve words
    assert mixed == pytest.approx(price * (first + second) / 2, abs=1e-5)
    assert twice == pytest.approx(price * first, abs=1e-5)
    assert scores.fits[2:] == pytest.approx([scores.fits[:2].min(), scores.fits[0]], abs=1e-5)
    whole = SimLLM(long="whole").score([Example(texts[2], None, JAVA, "java")]).values[0]
    assert whole != pytest.approx(scores.values[2], abs=1e-3)


def test_the_score_is_the_weighted_mean_of_cosine_and_fits(metric):
    scores = metric.code_reader.score([CodePair(JAVA, text, "java") for text in (FITTING, OTHER)])
    of_reference, of_cosine, of_fits = metric.code_reader.model.info.both
    mean = (of_cosine * scores.cosines + of_fits * scores.fits) / (of_cosine + of_fits)
    assert scores.values == pytest.approx(mean)
    both = metric.code_reader.combine(np.array([0.5, 0.1]), scores)
    assert both == pytest.approx(of_reference * np.array([0.5, 0.1]) + (1 - of_reference) * mean)


@pytest.mark.filterwarnings("ignore:.* (cut at|empty after|without words)")
def test_both_keeps_what_the_scores_against_the_reference_tell(metric):
    code = "void open() { log.open(); }"
    examples = [
        Example("opens the log file", "closes the log file", code),
        Example("opens the log file", "日本", code),
        Example("opens " * 600, "opens the log file " * 200, code),
    ]
    both, reference = metric.score(examples, against="both"), metric.score(examples)
    assert both.by_reference.tolist() == pytest.approx(reference.values.tolist())
    assert (both.empty, both.unreadable, both.truncated) == (1, 1, 2)
    assert both.changed.tolist() == reference.changed.tolist() == [True, False, False]
    assert both.deduplicated == reference.deduplicated


def test_both_lies_between_what_reference_and_code_say(metric):
    example = Example(FITTING, "Gets the maximum.", JAVA, "java")
    both = metric.score([example], against="both").values[0]
    by_reference = metric.score([example]).values[0]
    assert by_reference == metric.score([FITTING], ["Gets the maximum."]).values[0]
    assert both != by_reference


@pytest.mark.parametrize(
    ("examples", "against", "message"),
    [
        ([Example("a", None)], None, r"examples\[0\]: has no source"),
        ([Example("a", "b"), Example("a", None, "c")], None, r"examples\[1\]: has no reference, but others"),
        ([Example("a", None, "c")], "reference", r"examples\[0\]: has no reference"),
        ([Example("a", None, "c")], "both", r"examples\[0\]: has no reference"),
        ([Example("a", "b")], "both", r"examples\[0\]: has no source"),
        ([Example("a", "b", "c")], "source", "against 'source': expected one of reference, code, both"),
    ],
)
def test_missing_texts_are_named(metric, examples, against, message):
    with pytest.raises(InputError, match=message):
        metric.score(examples, against=against)


@pytest.mark.parametrize("option", [{"similarity": "f1"}, {"pooling": "cls"}])
def test_scores_against_code_are_cosines(option):
    metric, example = SimLLM(**option), Example("a", "b", "c")
    for against in ("code", "both"):
        message = f"against {against}: expected mean pooling and the similarity cosine"
        with pytest.raises(InputError, match=message):
            metric.score([example], against=against)
        with pytest.raises(InputError, match=message):
            metric.score_groups([[example]], against)
    with pytest.raises(InputError, match="against 'source': expected one of reference, code, both"):
        metric.score_groups([[example]], "source")


def test_no_examples_have_no_scores(metric):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(metric.score([], against="code").values) == 0


@pytest.mark.parametrize("name", ["simllm-code", "simllm-both"])
def test_registered_metrics(metric, name):
    loaded = registry.load(name)
    example = Example(FITTING, "Gets the maximum.", JAVA, "java")
    against = name.removeprefix("simllm-")
    assert registry.needs_source(name)
    assert loaded.signature == metric.signature_against(against)
    assert loaded.score([example]).values[0] == pytest.approx(
        metric.score([example], against=against).values[0], abs=1e-6
    )


def test_fits_is_a_metric_of_its_own(metric, model_folder):
    loaded, example = registry.load("simllm-fits"), Example(FITTING, None, JAVA, "java")
    assert loaded.score([example]).values[0] == pytest.approx(metric.score([example]).fits[0], abs=1e-6)
    assert loaded.signature != registry.load("simllm-code").signature
    with pytest.raises(UnavailableError, match="no model that reads code belongs to this model"):
        registry.load("simllm-fits", model_folder)


def test_a_shipped_code_reader_is_packaged():
    """The wheel has the folder only if pyproject.toml names it, and a missing folder breaks the build."""
    line = '"checkpoints/code" = "simllm/code_model"'
    is_named = line in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert is_named == (ROOT / "checkpoints" / "code").is_dir()
