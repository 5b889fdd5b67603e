"""Reports of studies: which files they have, and which files they replace."""

import json

import pytest

from simllm.errors import InputError
from simllm.io.report import ReportKind, check_report, write_report

COMMAND = "simllm evaluate x 'a\nb'"


@pytest.fixture
def template(tmp_path):
    file = tmp_path / "page.html"
    file.write_text(
        "{{ command }}: {{ number(0.25) }} {{ number(None) }} {{ probability(0.0001) }} {{ own }}"
    )
    return file


def test_a_report_has_a_page_figures_tables_and_further_files(tmp_path, template):
    kind = ReportKind("a report on x", "x.json", template, ["numpy"])
    files = {"rows.jsonl": iter(["1\n", "2\n"])}
    out = tmp_path / "out"
    write_report(out, kind, COMMAND, {"p": float("nan")}, {"own": "<b>"}, {"fact": 1}, ["T\n", "U\n"], files)
    assert (out / "report.html").read_text().endswith(": .250 \u2013 &lt; .001 &lt;b&gt;")
    found = json.loads((out / "x.json").read_text())
    assert (found["p"], found["command"], found["fact"]) == (None, COMMAND, 1)
    assert found["versions"].keys() >= {"simllm", "numpy"}
    # A line break in the command would end the comment of LaTeX.
    head = "% simllm evaluate x 'a b'\n% \\usepackage{booktabs}\n\n"
    assert (out / "tables.tex").read_text() == head + "T\n\nU\n"
    assert (out / "rows.jsonl").read_text() == "1\n2\n"


def test_a_report_is_replaced_as_a_whole_unless_it_keeps_records(tmp_path, template):
    for keeps in (False, True):
        kind = ReportKind("a report on x", "x.json", template, [], keeps_records=keeps)
        out = tmp_path / str(keeps)
        write_report(out, kind, "", {}, {"own": ""}, latex=["T\n"])
        write_report(out, kind, "", {}, {"own": "again"})
        assert (out / "report.html").read_text().endswith("again")
        assert (out / "tables.tex").exists() == keeps


def test_a_folder_of_another_kind_or_of_the_user_is_refused(tmp_path, template):
    kind = ReportKind("a report on x", "x.json", template, [])
    write_report(tmp_path / "out", kind, "", {}, {"own": ""})
    check_report(tmp_path / "out", kind, [template])
    with pytest.raises(InputError, match="holds a report on x; name another folder for a report on y"):
        check_report(tmp_path / "out", ReportKind("a report on y", "y.json", template, []), [])
    with pytest.raises(InputError, match="is the source"):
        check_report(tmp_path / "out", kind, [tmp_path / "out" / "rated.jsonl"])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("")
    with pytest.raises(InputError, match="holds files that simllm did not write"):
        check_report(tmp_path / "mine", kind, [])
