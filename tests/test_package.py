"""The wheel that users install, and its content."""

import re
import subprocess
import sys
import tomllib
import zipfile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import simllm
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    (file,) = folder.glob("*.whl")
    return file


@pytest.mark.slow
def test_wheel_contains_only_the_package_and_the_default_model(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"simllm"}
    for name in ("config.json", "model.safetensors", "tokenizer.json", "simllm.json", "README.md"):
        assert f"simllm/default_model/{name}" in names


@pytest.mark.slow
def test_wheel_contains_the_templates_scripts_and_other_files_of_the_package(wheel):
    package = ROOT / "simllm"
    files = [file for file in package.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    assert {".css", ".html", ".j2", ".js", ".json", ".txt"} <= {file.suffix for file in files}
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert [str(file) for file in files if file.relative_to(ROOT).as_posix() not in packed] == []


@pytest.mark.slow
def test_installed_package_finds_the_default_model(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = "from simllm.metric import default_model as d; print(d())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.strip() == str(tmp_path / "simllm" / "default_model")


def test_the_default_model_is_small_enough_to_ship():
    model = ROOT / "checkpoints" / "default"
    assert sum(file.stat().st_size for file in model.rglob("*") if file.is_file()) < 30_000_000


def test_constraints_pin_every_dependency_to_a_supported_version():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    versions = {canonicalize_name(name): version for name, version in pinned.items()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for group in (project["dependencies"], *project["optional-dependencies"].values()):
        for requirement in map(Requirement, group):
            if requirement.name != "simllm":
                assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)])


def test_one_version_everywhere():
    assert f"\nversion: {simllm.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    sections = re.findall(r"^## \[(.*)\] - ", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert sections[0] == simllm.__version__


def test_no_text_installs_simllm_from_a_package_index():
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for folder, pattern in (("docs", "*.md"), ("simllm", "*.py"), ("train", "*.py")):
        files += (ROOT / folder).rglob(pattern)
    wrong = [file for file in files if re.search(r"pip install (-\S+ )*['\"]?simllm\b", file.read_text())]
    assert len(files) > 100
    assert wrong == []


def test_no_model_names_a_place_of_the_machine_that_trained_it():
    files = [*(ROOT / "checkpoints").glob("*/*.json"), *(ROOT / "checkpoints").glob("*/*.md")]
    assert len(files) > 5
    for file in files:
        if file.name != "tokenizer.json":
            assert not re.search(r'"/\w', file.read_text(encoding="utf-8")), file
