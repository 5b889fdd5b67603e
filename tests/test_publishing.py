"""Publishing a version: notes from the changelog, the conda recipe, the context of the container image."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def notes(folder, version):
    command = [sys.executable, ROOT / ".github/release_notes.py", version]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_notes_are_the_section_of_a_dated_version(tmp_path):
    for name in ("simllm/__init__.py", "CITATION.cff", "conda.recipe/recipe.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    version = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1]
    text = f"# Changelog\n\n## [{version}] - DATE\n\n### Added\n\n- This.\n\n## [0.1] - 2020-01-01\n\n- No.\n"
    (tmp_path / "CHANGELOG.md").write_text(text.replace("DATE", "Unreleased"))
    done = notes(tmp_path, version)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"CHANGELOG.md: expected a section '## [{version}] - YYYY-MM-DD'\n"
    (tmp_path / "CHANGELOG.md").write_text(text.replace("DATE", "2026-12-01"))
    done = notes(tmp_path, version)
    assert (done.returncode, done.stdout) == (0, "### Added\n\n- This.\n")
    assert notes(tmp_path, "9.9").returncode == 2


def test_the_conda_recipe_has_the_dependencies_of_the_package():
    recipe = yaml.safe_load((ROOT / "conda.recipe/recipe.yaml").read_text())
    needed = {line.replace(" ", "") for line in recipe["requirements"]["run"]}
    assert needed == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}
    assert recipe["build"]["python"]["entry_points"] == [f"simllm = {PROJECT['scripts']['simllm']}"]


@pytest.mark.slow
def test_the_image_is_built_from_the_same_files_as_the_wheel(tmp_path):
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    context = tmp_path / "context"
    for name in kept:
        target = context / name
        target.parent.mkdir(parents=True, exist_ok=True)
        source, skipped = ROOT / name, shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, target, ignore=skipped) if source.is_dir() else shutil.copy(source, target)
    names = []
    for number, folder in enumerate((context, ROOT)):
        out = tmp_path / str(number)
        subprocess.run(
            [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, folder],
            check=True,
            capture_output=True,
        )
        (wheel,) = Path(out).iterdir()
        names.append(sorted(zipfile.ZipFile(wheel).namelist()))
    assert names[0] == names[1]
    assert "simllm/default_model/model.safetensors" in names[0]
