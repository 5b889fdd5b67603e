"""`simllm evaluate correlation` for code: metrics against passed tests and grades, by item and by system."""

import json

import pytest

from simllm import InputError
from simllm.evaluation.correlation import correlate, correlate_systems
from tests.command import run

SOURCE = "int half(int x) {\n  // TODO: halve\n  return x;\n}\n"
FIXED = "int half(int x) {\n  return x / 2;\n}\n"
OTHER = "int half(int x) {\n  return x >> 1;\n}\n"


def write(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.fixture
def tested(tmp_path):
    """Write candidates of three systems that were run on tests; those of the first system always pass."""
    rows = []
    for system, candidates in (("a", [FIXED, OTHER]), ("b", [FIXED, SOURCE]), ("c", [SOURCE, ""])):
        for number, text in enumerate(candidates):
            row = {"id": f"{number}/{system}", "system": system, "language": "java", "source": SOURCE}
            rows.append(row | {"reference": FIXED, "candidate": text, "passed": text not in (SOURCE, "")})
    return write(tmp_path / "tested.jsonl", rows)


def test_auc_of_passed_tests(tested):
    rows = {row.metric: row for row in correlate(tested, ["exact-match", "rpsr", "edit-similarity"]).rows}
    assert rows["exact-match"].auc == pytest.approx((2 + 0.5) / 3)
    assert rows["edit-similarity"].auc == 1
    assert rows["rpsr"].spearman < 0  # the unchanged source has the smallest patch, and is negated
    printed = run("evaluate", "--ratings", tested, "--metrics", "exact-match,rpsr", "-f", "json")
    result = json.loads(printed.stdout)
    assert result["rows"][0]["auc"] == pytest.approx(2.5 / 3)
    assert result["sign of rpsr"] == "negated, lower is better"
    assert "sign of exact-match" not in result


def test_code_reaches_metrics_for_code_as_it_is(tmp_path):
    """Code must not be cleaned like a comment: in lower case, "x = A" and "x = a" would be equal."""
    rows = [{"reference": "x = A", "candidate": text, "language": "python", "rating": rating}
            for text, rating in (("x = A", 3), ("x = a", 1), ("y = a", 0))]  # fmt: skip
    file = write(tmp_path / "case.jsonl", rows)
    assert correlate(file, ["exact-match"]).rows[0].spearman == pytest.approx(0.866, abs=1e-3)


def test_means_of_systems(tested):
    rows, missing = correlate_systems(tested, ["exact-match", "lemod", "nothing=x"][:2])
    assert not missing
    assert {row.metric: row.systems for row in rows} == {"exact-match": 3, "lemod": 3}
    (exact, _) = rows
    assert exact.pearson == pytest.approx(0.866, abs=1e-3)  # means .5, .5, 0 and 1, .5, 0
    printed = run("evaluate", "--ratings", tested, "--metrics", "lemod", "--level", "system", "-f", "tsv")
    assert printed.stdout.splitlines()[0] == "metric\tpearson\tspearman\tkendall"


def test_means_of_systems_do_not_depend_on_the_order_of_lines(tmp_path):
    values = {"a": [0.1, 0.2, 0.3], "b": [0.3, 0.2, 0.1], "c": [0.9, 0.9, 0.9]}
    tied = {"a": 1, "b": 1, "c": 2}
    pairs = [(system, value) for system, numbers in values.items() for value in numbers]
    common = {"reference": "", "candidate": ""}
    for file, rows in {
        "scores": [{"system": s, "rating": tied[s], "metrics": {"m": x}} for s, x in pairs],
        "ratings": [{"system": s, "rating": x, "metrics": {"m": tied[s]}} for s, x in pairs],
    }.items():
        written = write(tmp_path / f"{file}.jsonl", [common | row for row in rows])
        ((found,), _) = correlate_systems(written, ["column=m"])
        assert (found.spearman, found.kendall) == pytest.approx((1, 1))


def test_correlations_of_the_papers_systems(shared, tmp_path):
    """From the mean scores published for 20 systems, we get the published correlations with exact match."""
    published = json.loads((shared / "reference" / "code-metrics-published.json").read_text())
    for language, expected in published["pearson_with_exact_match"].items():
        rows = []
        for row in published["systems"]:
            if row["language"] == language:
                scores = {"bleu_diff": row["bleu_diff"], "crystalbleu_diff": row["crystalbleu_diff"]}
                scores["lemod"] = row["lemod"][2]
                texts = {"reference": "", "candidate": "", "rating": row["exact_match"]}
                rows.append({"system": row["system"], "metrics": scores, **texts})
        names = [f"column={name}" for name in ("bleu_diff", "crystalbleu_diff", "lemod")]
        found, _ = correlate_systems(write(tmp_path / "systems.jsonl", rows), names)
        assert [row.systems for row in found] == [20] * 3
        for row in found:
            assert row.pearson == pytest.approx(expected[row.metric.removeprefix("column=")], abs=5e-3)


@pytest.mark.slow
def test_grades_of_generated_code(real_files):
    names = ["exact-match", "token-bleu", "crystalbleu", "code-chrf", "edit-similarity"]
    rows = correlate(*real_files("rated/conala2023.jsonl"), names).rows
    assert [round(row.spearman, 2) for row in rows] == [0.24, 0.56, 0.48, 0.63, 0.55]


def test_missing_fields_leave_a_metric_out(tmp_path):
    rows = [{"reference": "a", "candidate": text, "rating": n} for n, text in enumerate("abc")]
    file = write(tmp_path / "plain.jsonl", rows)
    with_language = write(tmp_path / "language.jsonl", [row | {"language": "go"} for row in rows])
    assert correlate(file, ["exact-match", "jaccard"]).missing == {
        "exact-match": 'some pairs of plain have no text under "language"'
    }
    assert "source" in correlate(with_language, ["lemod", "jaccard"]).missing["lemod"]
    with pytest.raises(
        InputError, match=r'plain\.jsonl: 0 systems under "system"; a correlation needs at least 3'
    ):
        correlate_systems(file, ["jaccard"])
    wrong = write(tmp_path / "wrong.jsonl", [{"reference": "a", "candidate": "b", "passed": "yes"}] * 3)
    with pytest.raises(InputError, match='line 1: expected true or false under "passed"'):
        correlate(wrong, ["jaccard"])
