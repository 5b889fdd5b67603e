"""The other stages as jobs, and what the job scripts refuse."""

import json
import subprocess

import pytest

from tests.conftest import ROOT

SMALL = ["pairs=64", "updates=40", "warmup_updates=3", "evaluate_every=4", "learning_rate=2e-3"]


@pytest.fixture
def rated(tmp_path):
    pairs = (
        ("adds two lists", "adds lists", 4),
        ("gets it", "sets it", 1),
        ("opens a file", "opens the file", 5),
    )
    file = tmp_path / "rated.jsonl"
    rows = [dict(zip(("reference", "candidate", "rating"), pair, strict=True)) for pair in pairs]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_contrastive_goes_on_and_evaluate_rates_its_model(cluster, model_folder, texts, rated, tmp_path):
    lines = tmp_path / "train.txt"
    lines.write_text("".join(json.loads(line)["text"].split("\n")[0] + "\n" for line in texts.open()))
    job = cluster.submit(
        "slurm/contrastive.sbatch", "configs/contrastive.yaml", *SMALL,
        f"out={tmp_path}/run", f"model={model_folder}", f"dev=[{rated}]", f"exclude=[{rated}]",
        f"dev_comments={lines}", "rated=[]", "overlap=null",
        f"positives=[{{source: {lines}, fields: [], share: 1, word_dropout: 0.2}}]",
    )  # fmt: skip
    cluster.pause(job, "update 4 ")
    cluster.slurm("scancel", "--batch", "--signal=USR1", job)
    cluster.resume(job)
    assert cluster.finish(job)["Restarts"] == "1"
    assert "resuming after update" in cluster.output(job)

    job = cluster.submit(
        "slurm/evaluate.sbatch", "--ratings", rated, "--model", tmp_path / "run" / "model", "--metrics=simllm"
    )
    cluster.finish(job)
    assert cluster.output(job).startswith("metric\tspearman")


@pytest.mark.parametrize("script", ["pretrain", "contrastive"])
def test_without_a_config_it_says_how_it_is_used(cluster, script):
    job = cluster.submit(f"slurm/{script}.sbatch")
    assert cluster.finish(job, "FAILED")["ExitCode"] == "2:0"
    usage = f"sbatch slurm/{script}.sbatch CONFIG [key=value …]"
    assert cluster.output(job) == f"error: no config given: {usage}\n"


def test_it_is_submitted_from_the_checkout(cluster, tmp_path):
    job = cluster.submit(f"--chdir={tmp_path}", ROOT / "slurm" / "evaluate.sbatch")
    cluster.finish(job, "FAILED")
    assert cluster.output(job).endswith("error: submit it from the checkout\n")


def test_it_is_a_job_and_no_command():
    done = subprocess.run(
        ["bash", "slurm/pretrain.sbatch"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (
        2,
        "error: this is a job script: sbatch slurm/pretrain.sbatch …\n",
    )
