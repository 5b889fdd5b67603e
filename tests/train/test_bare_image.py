"""Training on the image of a GPU machine, which lacks the packages that build corpora."""

import json

import pytest
from safetensors.torch import load_file

from tests.bare_image import ABSENT, run_without
from tests.train.contrastive.one_update import overrides
from tests.train.distill.conftest import arguments, sources  # noqa: F401
from tests.train.pretrain.test_masked import masked, roberta  # noqa: F401
from tests.train.training_processes import log, pretraining

SHORT = ("updates=2", "warmup_updates=1", "evaluate_every=2")


@pytest.mark.slow
def test_commands_start():
    stages = ("pretrain", "pretrain.masked", "distill", "contrastive", "adapt", "corpus", "release")
    done = run_without(ABSENT, *((f"train.{stage}", "--help") for stage in stages))
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_corpus_that_must_be_built_names_the_missing_package(few_comments, tmp_path):
    done = run_without(ABSENT, ("train.pretrain", *pretraining(few_comments, tmp_path / "run")))
    assert done.stderr.splitlines()[-2].startswith("error: rensa is not installed"), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_every_stage_trains(finished_run, update_folder, arguments, roberta, teachers, tmp_path):  # noqa: F811
    corpus, texts = finished_run / "corpus", update_folder / "train.txt"
    imitation = {"texts": [{"source": str(texts)}], "max_texts": 200, "teachers": [str(teachers["bert"])]}
    imitation |= {"groups": 8, "cosine_weight": 1, "similarity_weight": 1}
    contrastive = [
        "configs/contrastive.yaml",
        *overrides(update_folder),
        f"imitation={json.dumps(imitation)}",
    ]
    done = run_without(
        ABSENT,
        ["train.pretrain", *pretraining(corpus, tmp_path / "pretrained"), *SHORT],
        ["train.pretrain.masked", *masked(roberta, corpus, tmp_path / "masked"), *SHORT],
        ["train.distill", *arguments(tmp_path / "distilled", *SHORT)],
        ["train.contrastive", *contrastive, f"out={tmp_path}/contrastive", *SHORT],
    )
    assert done.returncode == 0, done.stderr
    for name in ("pretrained", "masked", "distilled", "contrastive"):
        assert log(tmp_path / name)[-1]["update"] == 2
        assert load_file(tmp_path / name / "model" / "model.safetensors")
