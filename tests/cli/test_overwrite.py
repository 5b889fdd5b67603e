"""An existing output file is replaced only when the user says so."""

import pytest

from simllm.cli.exit_status import main


@pytest.fixture
def files(tmp_path, monkeypatch):
    (tmp_path / "c.txt").write_text("adds two lists\n")
    (tmp_path / "r.txt").write_text("combines 2 arrays\n")
    (tmp_path / "p.jsonl").write_text('{"reference": "a", "candidate": "b", "rating": 1}\n')
    (tmp_path / "thesis.txt").write_text("years of work")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ("score", "-c", "c.txt", "-r", "r.txt"),
        ("frequencies", "r.txt"),
        ("compare", "-r", "r.txt", "-c", "c.txt"),
        ("explain", "a", "b"),
        ("info",),
        ("selftest",),
        ("export",),
        ("evaluate", "--ratings", "p.jsonl"),
        ("evaluate", "contrast"),
        ("evaluate", "robustness"),
    ],
    ids=" ".join,
)
def test_an_existing_file_is_replaced_only_with_overwrite(command, files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    (files / "thesis.txt").write_text("years of work")
    assert main([*command, "-o", "thesis.txt"]) == 2
    assert capsys.readouterr().err == "simllm: error: thesis.txt: exists already; --overwrite replaces it\n"
    assert (files / "thesis.txt").read_text() == "years of work"
    if command[0] == "explain":
        assert main([*command, "-o", "thesis.txt", "--overwrite"]) == 0
        assert "a" in (files / "thesis.txt").read_text() != "years of work"
