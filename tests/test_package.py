"""What a user installs: the wheel, and what is in it."""

import subprocess
import sys
import zipfile

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    (file,) = folder.glob("*.whl")
    return file


def test_the_wheel_holds_the_package_and_the_default_model_only(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"simllm"}
    for name in ("config.json", "model.safetensors", "tokenizer.json", "simllm.json", "README.md"):
        assert f"simllm/default_model/{name}" in names


def test_the_default_model_is_found_beside_the_installed_package(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = "from simllm.metric import default_model as d; print(d())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.strip() == str(tmp_path / "simllm" / "default_model")


def test_the_default_model_is_small_enough_to_ship(wheel):
    model = ROOT / "checkpoints" / "default"
    assert sum(file.stat().st_size for file in model.rglob("*") if file.is_file()) < 30_000_000
