"""Each option of `simllm score` has an effect on each way of scoring, or is refused."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from simllm import InputError
from simllm.analysis.sharded_scoring import ShardSettings
from simllm.cli.main import main
from simllm.cli.score_options import Options

OTHER = {str: "other", int: 7, float: 0.25, bool: True, Path: Path("other"), list: ["other"]}


def other_value(field):
    """Return a value that is not the default of an option."""
    return next(OTHER[kind] for kind in OTHER if kind.__name__ in str(field.type))


@pytest.mark.parametrize("way", ["one file", "metrics", "code metrics", "several files"])
def test_no_option_is_without_effect(way, model_folder, tmp_path, monkeypatch, capsys):
    for name in ("a", "b"):
        row = {"candidate": "f(1)", "reference": "f(2)", "source": "f(3)", "language": "python"}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    arguments = {
        "one file": ["--jsonl", "a.jsonl", "--model", str(model_folder)],
        "metrics": ["--jsonl", "a.jsonl", "--metrics", "simllm,rouge-1", "--model", str(model_folder)],
        "code metrics": ["--jsonl", "a.jsonl", "--metrics", "lemod,simllm", "--model", str(model_folder)],
        "several files": ["--jsonl", "*.jsonl", "-o", "out", "--model", str(model_folder)],
    }[way]
    made, read = [], set()

    class Recorded(Options):
        def __init__(self, **values):
            super().__init__(**values)
            made.append(self)

        def check(self, has_several_files):
            super().check(has_several_files)
            read.clear()  # the check reads options only to refuse them

        def __getattribute__(self, name):
            read.add(name)
            return super().__getattribute__(name)

    monkeypatch.setattr("simllm.cli.score.Options", Recorded)
    assert main(["score", *arguments]) == 0, capsys.readouterr().err
    (options,) = made
    used = read | {"jsonl"}  # the pattern is expanded before the check
    if way == "several files":
        used |= {field.name for field in fields(ShardSettings)}
    without_effect = set()
    for field in fields(Options):
        if field.name not in used:
            try:
                replace(options, **{field.name: other_value(field)}).check(way == "several files")
            except InputError:
                continue
            without_effect.add(field.name)
    assert without_effect == set()
