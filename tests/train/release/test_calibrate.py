import json
import shutil

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from simllm import SimLLM
from simllm.model.saved_model import HEAD, distance
from train.contrastive.meaning_pairs import SAME
from train.release import calibrate
from train.release.calibrate import meaning_test_pairs, smallest_penalty


@pytest.mark.slow
def test_the_head_is_calibrated_on_labelled_pairs_and_items(call, head_folder, items, tmp_path):
    model, opposite = (shutil.copytree(head_folder, tmp_path / name) for name in ("model", "opposite"))
    weights = load_file(model / HEAD)  # random ones, which say the opposite of the labels
    weights |= {name: -weights[name] for name in ("logit.weight", "logit.bias")}
    save_file(weights, model / HEAD)
    comments, labelled = tmp_path / "comments.txt", tmp_path / "labelled.jsonl"
    comments.write_text("".join(f"opens the first file of {i} users\n" for i in range(60)))
    rows = [
        {"a": f"opens {i}", "b": f"{verb} {i}", "label": label, "set": "mine"}
        for i in range(40)
        for verb, label in (("open", "same"), ("closes", "different"))
    ]
    labelled.write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = ("--comments", comments, "--labelled", labelled, "--items", items)
    done = call(calibrate, model, *files)
    assert done.returncode == 0, done.stderr
    refused = call(calibrate, opposite, *files)
    assert refused.returncode == 2
    assert "its meaning head says the opposite of" in refused.stderr
    assert SimLLM(opposite).model.info.meaning == SimLLM(head_folder).model.info.meaning
    before, after = (SimLLM(folder).model.info.meaning for folder in (head_folder, model))
    assert (after.slope, after.intercept) != (before.slope, before.intercept)
    pairs = meaning_test_pairs(comments, labelled, items)
    assert after.fitted_on == f"{len(pairs[::2])} pairs, among them those of labelled.jsonl"
    assert sum(pair.label == SAME for pair in pairs) == len(pairs) / 2


def test_the_penalty_leaves_two_unlike_pairs_of_a_thousand():
    random = np.random.default_rng(0)
    logits, cosines = random.normal(-1, 1, 1000), random.uniform(-0.2, 0.3, 1000)
    penalty = smallest_penalty(logits, cosines)
    lowered = logits - penalty * distance(cosines)
    assert (lowered > 1e-9).sum() == 2
    assert smallest_penalty(logits - 10, cosines) == 0


def test_the_penalty_spares_similar_pairs():
    logits = np.array([3.0, 2.0, 1.0, -1.0])
    # The first two pairs are similar, so that no penalty helps; the third is at a distance of .2.
    assert smallest_penalty(logits, np.array([0.9, 0.5, 0.2, 0.0])) == pytest.approx(1 / 0.2)
    assert smallest_penalty(logits, np.ones(4)) == 0
