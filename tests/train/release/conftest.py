"""Shared fixtures of the release tests."""

import json
import shutil

import pytest
from safetensors.torch import load_file, save_file


@pytest.fixture
def shifted_runs(model_folder, tmp_path):
    """Write two runs of one model; the weights of the second run are all larger by 0.5."""
    for name, step in (("start", 0.0), ("end", 0.5)):
        shutil.copytree(model_folder, tmp_path / name / "model")
        weights = tmp_path / name / "model" / "model.safetensors"
        moved = {key: tensor + step for key, tensor in load_file(weights).items()}
        save_file(moved, weights, metadata={"format": "pt"})
    return [tmp_path / "start", tmp_path / "end"]


@pytest.fixture
def items(tmp_path):
    """Write 100 meaning items; about five are in each of the splits "dev" and "test"."""
    file = tmp_path / "items.jsonl"
    rows = [
        {
            "text": f"opens {i} files",
            "same": [f"open {i} files"],
            "different": [["related", f"adds {i} keys"]],
        }
        for i in range(100)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)
