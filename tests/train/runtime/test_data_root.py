"""The data folder in configurations: `${data}`."""

import pytest

from simllm.errors import InputError
from tests.conftest import ROOT
from train.contrastive.config import ContrastiveConfig
from train.pretrain.config import PretrainConfig
from train.release.measure import MeasureConfig
from train.runtime.config import hide_data_root, load

NAMES = ("base", "mini", "contrastive", "distill", "meaning", "measure", "debug", "ablations")


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv("SIMLLM_DATA", raising=False)


def rated(*overrides):
    return load(MeasureConfig, ROOT / "configs" / "measure.yaml", list(overrides)).rated[0]


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
