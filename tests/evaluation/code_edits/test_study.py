"""`simllm evaluate edits`: figures, report, and bad input."""

import json

import numpy as np
import pytest
from scipy import stats

from simllm.evaluation.code_edits.agreement import measure_agreement
from simllm.evaluation.code_edits.study import UNCHANGED, inserted_lines, run_study
from simllm.metrics.interface import Example
from simllm.stats.classification import average_pass_rate, pass_at_k
from tests.browser import check_page, needs_browser
from tests.command import process, run

SOURCE = "int half(int x) {\n  // TODO: halve\n  return x;\n}\n"
FIXED = "int half(int x) {\n  return x / 2;\n}\n"
OTHER = "int half(int x) {\n  return x >> 1;\n}\n"


def write(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def item(id_, candidate, **more):
    return {
        "id": id_,
        "source": SOURCE,
        "reference": FIXED,
        "candidate": candidate,
        "language": "java",
        **more,
    }


@pytest.fixture
def systems(tmp_path):
    good = [item(number, FIXED if number < 3 else OTHER) for number in range(4)]
    bad = [item(number, SOURCE) for number in range(4)]
    return write(tmp_path / "good.jsonl", good), write(tmp_path / "bad <b>.jsonl", bad)


def test_means_differences_and_further_figures(systems):
    study = run_study(systems, ["exact-match", "lemod", "rpsr"], [1])
    exact = study.comparisons["exact-match"]
    assert [(one.name, one.mean) for one in exact.systems] == [("good", 0.75), ("bad <b>", 0), (UNCHANGED, 0)]
    assert exact.differences[0].difference == 0.75
    assert study.comparisons["rpsr"].systems[1].mean == 0
    good = study.summaries["good"]
    assert (good["AVG"], good["TOP-1"], good["solved, easy"], good["solved, hard"]) == (
        0.75,
        0.75,
        0.75,
        None,
    )
    assert (good["lines deleted"], good["lines inserted"]) == (1, 1)
    # Three edits are right; the fourth deletes the right line and inserts another one.
    assert good["corpus lemod"] == 7 / 8
    assert "corpus exact-match" not in good
    assert good["corpus rpsr"] > study.summaries["bad <b>"]["corpus rpsr"] == 0
    assert study.coverage == {"items": 4, "by all": 0, "by at least one": 3, "by exactly one": 3}


def test_too_few_items_are_told_everywhere(systems, tmp_path):
    lone = write(tmp_path / "lone.jsonl", [item(0, FIXED)])
    done = run(
        "evaluate", "edits", lone, "--metrics", "lemod,exact-match", "--out", tmp_path / "o", "-f", "json"
    )
    few = "1 item: no difference can be significant, since p is at least 1; no intervals are given"
    assert (done.returncode, done.stderr) == (0, f"simllm: warning: {few}\n")
    assert json.loads(done.stdout)["warnings"] == [few]
    assert json.loads((tmp_path / "o" / "edits.json").read_text())["warnings"] == [few]
    assert f"<strong>{few}.</strong>" in (tmp_path / "o" / "report.html").read_text()
    # RPSR is undefined for the last item, whose reference changes nothing.
    rows = [item(n, FIXED) | ({"reference": SOURCE} if n == 5 else {}) for n in range(6)]
    assert run_study([write(tmp_path / "six.jsonl", rows)], ["lemod", "rpsr"], [1]).warnings == [
        "rpsr: 5 items: no difference can be significant, since p is at least 0.0625; no intervals are given"
    ]


@pytest.mark.slow
def test_report_in_a_new_process(systems, tmp_path):
    done = process("evaluate", "edits", *systems, "--out", tmp_path / "report", "-f", "tsv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split("\t")[:3] == ["system", "exact-match", "lemod"]
    written = tmp_path / "report"
    found = json.loads((written / "edits.json").read_text())
    assert found["metrics"]["rpsr"]["lower is better"] is True
    assert found["metrics"]["exact-match"]["scores"]["good"] == [1, 1, 1, 0]
    page = (written / "report.html").read_text()
    assert "By exact-match, good is best (.750)" in page
    assert "bad &lt;b&gt;" in page
    assert "bad <b>" not in page
    assert '<span class="same">+return x / 2 ;</span>' in page
    assert "src=" not in page
    assert "bad \\textless{}b\\textgreater{}" in (written / "tables.tex").read_text()
    again = run("evaluate", "edits", *systems, "--out", written, "--metrics", "lemod", "-q")
    assert again.returncode == 0
    assert list(json.loads((written / "edits.json").read_text())["metrics"]) == ["lemod"]


@pytest.mark.slow
@needs_browser
def test_page_in_a_browser(systems, tmp_path):
    assert run("evaluate", "edits", *systems, "--out", tmp_path / "report", "-q").returncode == 0
    check_page(tmp_path / "report" / "report.html", tmp_path, 3000)


def test_variants_and_attempts(tmp_path):
    """A system has two variants, "short" and "long", each with two tested attempts at an item."""
    rows = [
        item(0, OTHER, system="m", variant="short", passed=True),
        item(0, SOURCE, system="m", variant="short", passed=False),
        item(0, FIXED, system="m", variant="long", passed=True),
        item(0, FIXED, system="m", variant="long", passed=True),
    ]
    study = run_study([write(tmp_path / "all.jsonl", rows)], ["exact-match", "rpsr"], [1, 2])
    assert [system.name for system in study.systems] == ["m/short", "m/long", UNCHANGED]
    short = study.summaries["m/short"]
    assert (short["AVG"], short["TOP-1"], short["TOP-2"]) == (0.5, 0.5, 1)
    short_rpsr = study.systems[0].scores["rpsr"][0]
    assert 0 < short_rpsr < 1  # lower is better
    assert study.best == {"m": {"exact-match": 1, "rpsr": short_rpsr}}
    assert study.coverage["by all"] == 1


def test_coverage_and_best_of_the_reference_vectors(shared, tmp_path):
    vectors = json.loads((shared / "reference" / "code-metrics.json").read_text())["coverage"]
    rows = [
        item(id_, FIXED if solved else SOURCE, system=name.split("/")[0], variant=name.split("/")[1])
        for name, addressed in vectors["addressed"].items()
        for id_, solved in addressed.items()
    ]
    study = run_study([write(tmp_path / "rows.jsonl", rows)], ["exact-match"])
    expected = {
        name.replace("_", " "): vectors[name]
        for name in ("items", "by_all", "by_at_least_one", "by_exactly_one")
    }
    assert study.coverage == expected
    assert {name: row["AVG"] for name, row in study.summaries.items() if name != UNCHANGED} == vectors["rate"]
    assert {name: best["exact-match"] for name, best in study.best.items()} == vectors["best_of"]


def test_pass_rates_of_the_reference_vectors(shared):
    for case in json.loads((shared / "reference" / "code-metrics.json").read_text())["passes"]:
        assert average_pass_rate(case["passed"]) == pytest.approx(case["avg"])
        for k, expected in case["top"].items():
            assert pass_at_k(case["passed"], int(k)) == pytest.approx(expected)


def test_difficulty_of_the_reference_vectors(shared):
    for row in json.loads((shared / "reference" / "code-metrics.json").read_text())["items"]:
        example = Example("", row["reference"], row["source"], row["language"])
        assert inserted_lines(example) == row["inserted_lines"]


@pytest.mark.parametrize(
    ("rows", "more", "message"),
    [
        ([[item(0, FIXED)], [item(1, FIXED)]], [], "system b has no item 0; all need the same items"),
        (
            [[item(0, FIXED)], [item(0, FIXED) | {"reference": "int x;"}]],
            [],
            "item 0 of b: differs in source or reference",
        ),
        ([[item(0, FIXED)]], ["--top", "2"], "TOP-2 needs 2 candidates of each item; an item has 1"),
        ([[item(0, FIXED)]], ["--top", "0"], "--top 0: expected whole numbers from 1"),
        ([[item(0, FIXED)]], ["--top", "x"], "--top x: expected whole numbers from 1"),
        ([[item(0, FIXED)]], ["--metrics", "jaccard"], "metric 'jaccard': expected a metric for code"),
        ([[item(0, FIXED, passed="no")]], [], 'line 1: expected true or false under "passed"'),
        ([[item(0, FIXED, system=UNCHANGED)]], [], "this name is taken by the baseline"),
        (
            [[{"id": 1, "reference": "a", "candidate": "b", "language": "go"}]],
            [],
            'expected a text under "source"',
        ),
        (
            [[{"reference": "a", "source": "", "candidate": "b", "language": "go"}]],
            [],
            'expected a value under "id"',
        ),
    ],
)
def test_bad_input_is_one_line(tmp_path, rows, more, message):
    files = [write(tmp_path / f"{name}.jsonl", each) for name, each in zip("ab", rows, strict=False)]
    done = run("evaluate", "edits", *files, "--out", tmp_path / "report", *more)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "report").exists()


def test_foreign_folder_is_refused(systems, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "report.html").write_text("mine")
    done = run("evaluate", "edits", *systems, "--out", tmp_path / "mine")
    assert done.returncode == 2
    assert (tmp_path / "mine" / "report.html").read_text() == "mine"


def test_input_inside_the_report_is_refused(systems, tmp_path):
    report = tmp_path / "report"
    assert run("evaluate", "edits", *systems, "--out", report, "--metrics", "exact-match").returncode == 0
    (tmp_path / "link.jsonl").symlink_to(report / "edits.json")
    before = (report / "edits.json").read_bytes()
    for file in (report / "edits.json", tmp_path / "link.jsonl"):
        done = run("evaluate", "edits", systems[0], file, "--out", report, "--metrics", "exact-match")
        assert done.returncode == 2
        message = f"{report}: is the source {file}, inside it or above it; name another folder"
        assert done.stderr == f"simllm: error: {message}\n"
    assert (report / "edits.json").read_bytes() == before


def test_a_file_is_given_only_once(systems, tmp_path):
    again = tmp_path / "none" / ".." / "good.jsonl"
    (tmp_path / "none").mkdir()
    done = run("evaluate", "edits", *systems, again, "--out", tmp_path / "report")
    assert (done.returncode, done.stderr) == (2, f"simllm: error: {again}: is named twice\n")
    assert not (tmp_path / "report").exists()


def test_two_files_with_one_name_are_no_system(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        write(tmp_path / name / "out.jsonl", [item(0, FIXED)])
    files = [tmp_path / name / "out.jsonl" for name in "ab"]
    done = run("evaluate", "edits", *files, "--out", tmp_path / "report")
    assert done.returncode == 2
    assert "name the systems by `system` in each line" in done.stderr


def test_an_id_has_one_source_and_reference(tmp_path):
    file = write(tmp_path / "a.jsonl", [item(0, FIXED), item(0, FIXED, source="int x;")])
    done = run("evaluate", "edits", file, "--out", tmp_path / "report")
    assert done.returncode == 2
    assert "line 2: item 0: differs in source or reference" in done.stderr


def test_a_small_patch_is_not_called_better(systems, tmp_path):
    assert run("evaluate", "edits", *systems, "--out", tmp_path / "report", "-q").returncode == 0
    page = (tmp_path / "report" / "report.html").read_text()
    assert "bad &lt;b&gt; has the smallest rpsr (.000), whether it is right or wrong." in page
    assert "By rpsr" not in page


HARDER = "int half(int x) {\n  if (x < 0) {\n    return -half(-x);\n  }\n  return x / 2;\n}\n"


def hard(id_, candidate):
    return item(id_, candidate) | {"reference": HARDER}


def test_every_metric_on_easy_and_on_hard_items(tmp_path):
    good = [*(item(n, FIXED) for n in range(7)), *(hard(n, OTHER) for n in range(7, 10))]
    bad = [*(item(n, OTHER if n < 6 else FIXED) for n in range(7)), *(hard(n, HARDER) for n in range(7, 10))]
    paths = write(tmp_path / "good.jsonl", good), write(tmp_path / "bad.jsonl", bad)
    study = run_study(paths, ["exact-match", "lemod"], [1])
    assert {group: found["exact-match"].n for group, found in study.groups.items()} == {"easy": 7, "hard": 3}
    means = {
        group: [(one.name, one.mean) for one in found["exact-match"].systems]
        for group, found in study.groups.items()
    }
    assert means == {
        "easy": [("good", 1), ("bad", 1 / 7), (UNCHANGED, 0)],
        "hard": [("good", 0), ("bad", 1), (UNCHANGED, 0)],
    }
    # Three of ten items: the means of the groups add up to that of the whole.
    found = [study.comparisons["lemod"], *(means["lemod"] for means in study.groups.values())]
    whole, easy, hard_ = (one.systems[0].mean for one in found)
    assert whole == pytest.approx((7 * easy + 3 * hard_) / 10)
    low = study.groups["hard"]["lemod"].systems[0].low
    assert np.isnan(low)  # three items
    assert list(run_study([write(tmp_path / "e.jsonl", good[:7])], ["lemod"], [1]).groups) == ["easy"]


def test_metrics_agree_over_edits_and_systems():
    random = np.random.default_rng(0)
    matches = (random.random((4, 30)) < [[0.2], [0.4], [0.6], [0.8]]).astype(float)
    noisy = matches + random.normal(0, 0.5, matches.shape)
    gaps = np.where(random.random(matches.shape) < 0.1, np.nan, -noisy)
    found = measure_agreement(
        {"exact-match": matches, "a": noisy, "b": gaps, "same": np.ones((4, 30))}, matches
    )
    assert (found.edits, found.systems, list(found.exact_match)) == (120, 4, ["a", "b", "same"])
    expected = stats.spearmanr(matches.ravel(), noisy.ravel()).statistic
    assert found.over_edits[0, 1] == found.over_edits[1, 0] == pytest.approx(expected)
    assert found.over_edits[1, 2] == pytest.approx(-1)
    known = ~np.isnan(gaps).any(axis=0)
    by_system = stats.spearmanr(matches[:, known].mean(1), noisy[:, known].mean(1)).statistic
    assert found.over_systems[0, 1] == pytest.approx(by_system)
    a = found.exact_match["a"]
    assert a.rho == pytest.approx(expected)
    assert a.low < a.rho < a.high
    assert a.r == pytest.approx(stats.pearsonr(matches.ravel(), noisy.ravel()).statistic)
    assert (a.right, a.wrong) == pytest.approx((noisy[matches == 1].mean(), noisy[matches == 0].mean()))
    assert np.isnan(found.exact_match["same"].rho)
    assert measure_agreement({"a": noisy[:2]}, matches[:2]).over_systems is None


def test_intervals_draw_items_and_not_edits():
    """Two systems with the same edits say no more than one of them."""
    random = np.random.default_rng(1)
    matches = (random.random((1, 40)) < 0.5).astype(float)
    scores = matches + random.normal(0, 1, matches.shape)
    once, twice = (
        measure_agreement({"a": np.tile(scores, (count, 1))}, np.tile(matches, (count, 1))).exact_match["a"]
        for count in (1, 2)
    )
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high))


def test_no_exact_match_at_all_is_told(tmp_path):
    rows = [item(n, OTHER) for n in range(6)]
    assert run_study([write(tmp_path / "a.jsonl", rows)], ["lemod"], [1]).warnings == [
        "no correlation with exact match: all edits equal their references, or none does"
    ]


def test_replies_of_generate_are_read_with_their_failures(tmp_path):
    """Lines as `simllm generate` writes them: item, reply or failure, tokens, request."""
    reply = f"Here it is:\n```java\n{FIXED}```\nI divide by two."
    rows = []
    for number in range(4):
        row = {key: value for key, value in item(f"i{number}", "").items() if key != "candidate"}
        text, failure = (None, "beyond the context (HTTP status 400)") if number == 3 else (reply, None)
        more = {"finish_reason": "stop", "prompt_tokens": 9, "completion_tokens": 9, "seconds": 0.1}
        rows.append(
            {**row, "sample": 1, "reply": text, "failure": failure, **more, "request": {"prompt": "x"}}
        )
    write(tmp_path / "m.jsonl", rows)
    done = run("evaluate", "edits", tmp_path / "m.jsonl", "--metrics", "exact-match", "--out", tmp_path / "r")
    assert done.returncode == 0
    assert "warning: failed requests: 1 of 4; they count as empty candidates (i3 of m)" in done.stderr
    found = json.loads((tmp_path / "r" / "edits.json").read_text())
    assert found["metrics"]["exact-match"]["scores"]["m"] == [1, 1, 1, 0]
    assert found["replies"]["failed requests"] == 1
    assert found["systems"]["m"]["without code"] == 1
    # A null without a reason is no line of `generate`.
    del rows[3]["failure"]
    write(tmp_path / "n.jsonl", [rows[3]])
    done = run(
        "evaluate", "edits", tmp_path / "n.jsonl", "--metrics", "exact-match", "--out", tmp_path / "r2"
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert 'line 1: expected a text under "reply"' in done.stderr


def test_page_json_and_latex_have_groups_and_agreement(tmp_path):
    files = [
        write(
            tmp_path / f"{name}.jsonl", [*(item(n, a) for n in range(6)), *(hard(n, b) for n in range(6, 9))]
        )
        for name, a, b in (("a", FIXED, OTHER), ("b", OTHER, HARDER), ("c_d", SOURCE, FIXED))
    ]
    done = run("evaluate", "edits", *files, "--metrics", "exact-match,lemod,rpsr", "--out", tmp_path / "r")
    assert done.returncode == 0
    found = json.loads((tmp_path / "r" / "edits.json").read_text())
    assert [one["mean"] for one in found["groups"]["hard"]["exact-match"]["systems"]] == [0, 1, 0, 0]
    agreement = found["agreement"]
    assert (agreement["metrics"], agreement["edits"]) == (["exact-match", "lemod", "rpsr"], 27)
    assert (len(agreement["over edits"]), len(agreement["over systems"])) == (3, 3)
    assert agreement["with exact match"]["lemod"]["right"] == 1
    page = (tmp_path / "r" / "report.html").read_text()
    for text in ("Easy and hard items", "Over 27 edits", "Over the means of 3 systems", "With exact match"):
        assert text in page
    tables = (tmp_path / "r" / "tables.tex").read_text()
    for name in (
        "edits-easy",
        "edits-hard",
        "edit-agreement-edits",
        "edit-agreement-systems",
        "edit-exact-match",
    ):
        assert f"tab:{name}" in tables or name in tables
    assert "c\\_d" in tables
