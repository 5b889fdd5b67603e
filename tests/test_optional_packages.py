"""Optional packages: the message if one is missing."""

import tomllib

import pytest

from simllm.io.packages import missing_package
from tests.conftest import ROOT


@pytest.mark.parametrize("extra", ["code", "eval", "onnx", "ray", "repair", "serve", "torch", "train"])
def test_the_message_about_a_missing_package_names_an_extra(extra):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert extra in project["optional-dependencies"]
    assert f"run pip install '.[{extra}]'" in missing_package("some_package", extra)
