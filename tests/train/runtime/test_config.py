"""Configurations: YAML, overrides, and the folder of the data sets."""

import re

import pytest

from simllm.errors import InputError
from tests.conftest import ROOT
from train.contrastive.config import ContrastiveConfig
from train.pretrain.config import PretrainConfig
from train.release.measure import MeasureConfig
from train.runtime.config import hide_data_root, load, read_values, shorten_paths


@pytest.mark.parametrize("name", ["debug", "mini", "base"])
def test_shipped_configs_load(name):
    config = load(PretrainConfig, ROOT / "configs" / f"{name}.yaml", [])
    assert config.out == f"runs/{name}"


def test_overrides():

    overrides = ["updates=7", "warmup_updates=1", "model.hidden_size=64", "corpus.sources=[a.txt]"]
    config = load(PretrainConfig, ROOT / "configs" / "debug.yaml", overrides)
    assert (config.updates, config.model.hidden_size, config.corpus.sources) == (7, 64, ("a.txt",))
    with pytest.raises(InputError, match=r"unknown key model\.hidden"):
        load(PretrainConfig, ROOT / "configs" / "debug.yaml", ["model.hidden=64"])
    with pytest.raises(InputError, match="expected key=value"):
        load(PretrainConfig, ROOT / "configs" / "debug.yaml", ["updates"])
    with pytest.raises(InputError, match="updates holds no keys"):
        load(PretrainConfig, ROOT / "configs" / "debug.yaml", ["updates.a=7"])
    with pytest.raises(InputError) as raised:
        load(PretrainConfig, ROOT / "configs" / "debug.yaml", ["updats=3", "model.vocab_size=5", "packing=x"])
    for problem in ("unknown key updats", "model: vocab_size must be more", "packing must be documents or"):
        assert problem in str(raised.value)
    with pytest.raises(InputError, match=r"updates must be positive; .*warmup_updates must be between"):
        load(PretrainConfig, ROOT / "configs" / "debug.yaml", ["updates=0"])


def bomb():
    lines = ["z0: &z0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    return "\n".join(lines + [f"z{i}: &z{i} [{', '.join([f'*z{i - 1}'] * 10)}]" for i in range(1, 12)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (bomb(), "over 100,000 values or 50 levels"),
        ("{" + "a: {" * 5_000 + "}" * 5_001, "over 100,000 values or 50 levels"),
        ("[" * 100_000, "over 100,000 values or 50 levels"),
        ("updates: &u {more: [*u]}", r"\*u is inside of itself"),
        ("updates: " + "8" * 5_000, "not valid YAML"),
        ("updates: 2020-13-45", "not valid YAML"),
        ("seed: 1\nupdates: 3\nseed: 2\n", "key seed stands twice"),
        ("model: {hidden_size: 64, hidden_size: 32}", "key hidden_size stands twice"),
        ("out: !!python/object/apply:os.getcwd []", "not valid YAML"),
        ("- 1\n- 2\n", "must hold keys"),
        ("\x00", "not valid YAML"),
    ],
)
def test_hostile_yaml_is_an_error_in_one_line(tmp_path, text, message):
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        load(PretrainConfig, file, [])
    assert str(error.value).startswith(f"{file}: ")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 600


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("updates=" + "9" * 400, r"updates must be a number of at most 19 digits"),
        ("updates=" + "9" * 5_000, "not a YAML value"),
        ("learning_rate=" + "9" * 400, "learning_rate must be a finite number"),
        ("learning_rate=1e999", "learning_rate must be a finite number"),
        ("learning_rate=.nan", "learning_rate must be a finite number"),
        ("learning_rate=nan", "learning_rate must be a finite number"),
        ("seed=-.inf", "seed must be"),
        ("seed=[" + "[" * 999, "not a YAML value"),
        (".".join(["a"] * 9_999) + "=1", "the key has over 50 parts"),
        ("corpus.sources." + "1" * 5_000 + "=x", "items, from 0"),
    ],
)
def test_extreme_overrides_are_errors_in_one_line(override, message):
    with pytest.raises(InputError, match=message) as error:
        load(PretrainConfig, ROOT / "configs" / "debug.yaml", [override])
    assert "\n" not in str(error.value)


def test_aliases_that_repeat_a_few_values_are_kept(tmp_path):
    file = tmp_path / "config.yaml"
    text = (ROOT / "configs" / "debug.yaml").read_text()
    file.write_text(text + "\n")
    rate = "learning_rate: &rate 0.25\nwarmup_start: *rate\n"
    lines = [line for line in text.splitlines() if not line.startswith(("learning_rate", "warmup_start"))]
    file.write_text("\n".join(lines) + "\n" + rate)
    assert load(PretrainConfig, file, []).warmup_start == 0.25


NAMES = ("base", "mini", "contrastive", "distill", "meaning", "measure", "debug", "ablations")


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv("SIMLLM_DATA", raising=False)


def rated(*overrides):
    return load(MeasureConfig, ROOT / "configs" / "measure.yaml", list(overrides)).rated[0]


def test_a_file_like_another_has_its_other_values(tmp_path):
    (tmp_path / "base.yaml").write_text("a: 1\nb: {c: 2, d: [3, 4]}\n")
    (tmp_path / "own.yaml").write_text("like: base.yaml\nb: {d: [5]}\ne: null\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "third.yaml").write_text("like: ../own.yaml\na: 7\n")
    assert read_values(tmp_path / "own.yaml", ["b.c=6"]) == {"a": 1, "b": {"c": 6, "d": [5]}, "e": None}
    third = read_values(tmp_path / "more" / "third.yaml", [])
    assert third == {"a": 7, "b": {"c": 2, "d": [5]}, "e": None}


@pytest.mark.parametrize(
    ("like", "message"),
    [
        ("nowhere.yaml", "nowhere.yaml: "),
        ("[base.yaml]", "own.yaml: like must name a file, not ['base.yaml']"),
        ("''", "own.yaml: like must name a file, not ''"),
        ("false", "own.yaml: like must name a file, not False"),
        ("list.yaml", "list.yaml: expected keys with values"),
        ("own.yaml", "own.yaml: is like own.yaml, which is like this file"),
        ("circle.yaml", "circle.yaml: is like own.yaml, which is like this file"),
        ("data", "data: "),
    ],
)
def test_wrong_files_to_be_like_give_one_line(tmp_path, like, message):
    (tmp_path / "data").mkdir()
    (tmp_path / "list.yaml").write_text("[1, 2]")
    (tmp_path / "circle.yaml").write_text("like: own.yaml\n")
    (tmp_path / "own.yaml").write_text(f"like: {like}\na: 1\n")
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read_values(tmp_path / "own.yaml", [])
    assert "\n" not in str(caught.value)


def test_data_folder_from_default_environment_or_override(monkeypatch):
    assert rated() == "data/rated/haque2022.jsonl"
    monkeypatch.setenv("SIMLLM_DATA", "/sets")
    assert rated() == "/sets/rated/haque2022.jsonl"
    assert rated("data=/mine") == "/mine/rated/haque2022.jsonl"
    assert rated("rated=['${data}/own.jsonl']") == "/sets/own.jsonl"


def test_data_folder_from_a_configuration(tmp_path):
    file = tmp_path / "measure.yaml"
    file.write_text("data: /named\n" + (ROOT / "configs" / "measure.yaml").read_text())
    assert load(MeasureConfig, file, []).rated[0] == "/named/rated/haque2022.jsonl"
    assert load(MeasureConfig, file, ["data=/mine"]).rated[0] == "/mine/rated/haque2022.jsonl"
    with pytest.raises(InputError, match="data must name a folder, not 3"):
        load(MeasureConfig, file, ["data=3"])


def test_data_folder_is_used_in_nested_keys():
    config = load(PretrainConfig, ROOT / "configs" / "mini.yaml", ["data=/d"])
    assert config.corpus.sources[0] == "/d/corpus/emse_deepcom.jsonl.gz"
    config = load(ContrastiveConfig, ROOT / "configs" / "contrastive.yaml", ["data=/d"])
    assert config.rated[0].sources[2] == "/d/sts/semeval_sts/*.jsonl"


def test_no_configuration_names_a_folder_outside_the_checkout():
    for name in NAMES:
        assert "../" not in (ROOT / "configs" / f"{name}.yaml").read_text()


def test_provenance_does_not_name_the_data_folder(monkeypatch):
    monkeypatch.setenv("SIMLLM_DATA", "/sets")
    values = {"/sets/a.jsonl": ["/sets/b/*.gz", "/sets-2/c", "runs//sets/d", 3]}
    assert hide_data_root(values) == {"${data}/a.jsonl": ["${data}/b/*.gz", "/sets-2/c", "runs//sets/d", 3]}


def test_a_released_model_names_no_folder_of_the_training_machine(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    values = {"out": f"{tmp_path}/runs/a", "texts": ["/sets/b/*.gz", "${data}/c", "runs/d", "/", 3]}
    assert shorten_paths(values) == {"out": "runs/a", "texts": ["*.gz", "${data}/c", "runs/d", "/", 3]}
