"""Values of code metrics over a whole corpus: they equal reference results and those of other libraries."""

import json

import pytest

from simllm import metrics
from simllm.code.reply import code_of_reply
from simllm.errors import InputError
from simllm.metrics.code.bleu import shared_of_references
from simllm.metrics.interface import Example


def corpus_value(name, items):
    return metrics.load(name).corpus_value(items)


OLD = "int f(int a) {\n  return a;\n}\n"


def body(*lines):
    return "int f(int a) {\n" + "".join(f"  {line}\n" for line in lines) + "  return a;\n}\n"


def example(candidate, reference, source=OLD):
    return Example(candidate, reference, source, "java")


def test_lemod_sums_lines_first():
    items = [
        [example(body("b();"), body("c();"))],
        [example(body("d();"), body("d();", "e();", "g();")), example(OLD, body("d();", "e();", "g();"))],
    ]
    # Edited lines: 2 of the candidates, 7 of the references (3 for each attempt at the second item); one
    # line is common.
    assert corpus_value("lemod-precision", items) == 1 / 2
    assert corpus_value("lemod-recall", items) == 1 / 7
    assert corpus_value("lemod", items) == pytest.approx(2 / 9)
    assert corpus_value("lemod", [[example(OLD, OLD)]]) == 0


def test_a_candidate_without_code_lowers_every_value():
    full, empty = [[example(body("b();"), body("b();"))]], [[example("", body("b();"))]]
    for name in ("lemod", "token-bleu", "bleu-diff", "crystalbleu", "crystalbleu-diff"):
        values = [corpus_value(name, items) for items in (full, full + empty, empty)]
        assert values == sorted(values, reverse=True), name
        assert values[2] == pytest.approx(0, abs=1e-6), name


def test_one_pair_has_the_value_of_the_metric():
    pair = example(body("b(a);", "c(a, 1);"), body("b(a);", "d(a, 1);"))
    for name in ("lemod", "token-bleu", "bleu-diff", "rpsr"):
        assert corpus_value(name, [[pair]]) == pytest.approx(metrics.load(name).score([pair]).values[0]), name


def test_ignored_ngrams_do_not_depend_on_the_number_of_candidates():
    first, second = (body(*(f"{name}{i}();" for i in range(300))) for name in "xy")
    once = [example(first, first), example(second, second)]
    more = [*once, *(example(f"int f{i}() {{}}", second) for i in range(3))]
    assert shared_of_references(more) == shared_of_references(once)


def test_crystalbleu_of_a_corpus_equals_the_published_package(tmp_path):
    """The values come from the package crystalbleu 0.2, called with all pairs at once."""
    shared_ngrams = {"shared_ngrams": {"java": [[["("], 9], [[")"], 9], [["a", ")"], 5]]}}
    file = tmp_path / "shared.json"
    file.write_text(json.dumps(shared_ngrams))
    items = [
        [example(body("b(a);", "c(a, 1);"), body("b(a);", "d(a, 1);"))],
        [example(body("x = a * (a + 2);"), body("x = a * (a + 2);", "y(x);"))],
    ]
    assert corpus_value(f"crystalbleu={file}", items) == pytest.approx(0.8277694770, abs=1e-9)
    assert corpus_value(f"crystalbleu-diff={file}", items) == pytest.approx(0.6779276731, abs=1e-9)
    with pytest.raises(InputError, match="cannot be read"):
        corpus_value(f"crystalbleu={tmp_path / 'none.json'}", items)


def test_metrics_without_a_corpus_value():
    items = [[example(OLD, OLD)]]
    for name in ("exact-match", "code-chrf", "rps", "lemod=as-published"):
        assert corpus_value(name, items) is None
    assert corpus_value("rpsr", items) is None  # nothing to divide by


@pytest.mark.parametrize("strategy", ["single", "multi-regenerate", "cref"])
def test_rpsr_equals_the_published_form(shared, strategy):
    vectors = json.loads((shared / "reference" / "repair_items.json").read_text())
    result = vectors["results"][strategy]
    items = []
    for item in vectors["items"]:
        language, replies = item["language"], vectors["replies"][item["id"]]
        last = [replies[rounds[-1]["reply"]] for rounds in result["attempts"][item["id"]]]
        codes = [code_of_reply(reply, language).text or "" for reply in last]
        items.append([Example(code, item["fix"], item["code"], language) for code in codes])
    assert corpus_value("rpsr", items) == pytest.approx(result["RPSR published form"], abs=1e-6)
