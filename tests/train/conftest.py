"""What tests of training share."""

import json
from itertools import pairwise

import pytest
import yaml

from tests.train.contrastive.one_update import sources


@pytest.fixture
def sets(comments, tmp_path):
    """A configuration of figures over real comments, rated by how many words they share."""
    rated, rows = tmp_path / "set" / "rated.jsonl", tmp_path / "held-out.jsonl"
    rated.parent.mkdir()
    with rated.open("w") as file:
        for a, b in pairwise(comments[:61]):
            row = {"reference": a, "candidate": b, "rating": len(set(a.split()) & set(b.split()))}
            file.write(json.dumps(row) + "\n")
    with rows.open("w") as file:
        for number, text in enumerate(comments[:200]):
            half = text[: len(text) // 2].strip() or text
            row = {"summary": half, "description": text, "language": ("python", "go")[number % 2]}
            file.write(json.dumps(row | {"split": ("train", "test")[number % 3 > 0]}) + "\n")
    config = {
        "rated": [str(rated)], "baselines": ["jaccard"], "comments": str(rows),
        "comments_per_language": 20, "random_pairs": 50,
    }  # fmt: skip
    file = tmp_path / "measure.yaml"
    file.write_text(yaml.safe_dump(config))
    return file


@pytest.fixture(scope="session")
def update_folder(comments, model_folder, tmp_path_factory):
    """Every kind of source of the contrastive stage, in few texts, and a model to start from."""
    folder = tmp_path_factory.mktemp("update")
    sources(folder, comments, model_folder)
    return folder
