"""The dev criterion, which chooses the best model of a run."""

import json

from simllm import SimLLM
from train.runtime.dev_criterion import DevCriterion


def test_files_of_the_same_name_all_count(model_folder, tmp_path):
    files = [tmp_path / name / "dev.jsonl" for name in ("a", "b")]
    pairs = [("adds two lists", "adds two lists"), ("gets it", "gets the name"), ("opens it", "reads a file")]
    for file, ratings in zip(files, ((5, 3, 1), (1, 4, 5)), strict=True):
        file.parent.mkdir()
        rows = [
            {"candidate": a, "reference": b, "rating": r} for (a, b), r in zip(pairs, ratings, strict=True)
        ]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    metric = SimLLM(model_folder)
    alone = [DevCriterion([str(file)], None, 1)(metric)[0] for file in files]
    criterion, figures = DevCriterion([*map(str, files)], None, 1)(metric)
    assert alone[0] != alone[1]
    assert criterion == sum(alone) / 2
    assert [figures[f"spearman_{file}"] for file in files] == [-value for value in alone]
