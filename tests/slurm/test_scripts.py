"""The contrastive and evaluation jobs on a real SLURM cluster."""

import json

import pytest

from simllm.text_cleaning import clean
from tests.conftest import ROOT
from train.corpus import build
from train.corpus.config import CorpusConfig

pytestmark = pytest.mark.slow

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


def test_contrastive_job_is_requeued_and_its_model_is_evaluated(
    cluster, model_folder, comments, rated, tmp_path
):
    lines = tmp_path / "train.txt"
    lines.write_text("".join(clean(text) + "\n" for text in comments[:300]))
    job = cluster.submit(
        "slurm/contrastive.sbatch", "configs/contrastive.yaml", *SMALL,
        f"out={tmp_path}/run", f"model={model_folder}", f"dev=[{rated}]", f"exclude=[{rated}]",
        f"dev_comments={lines}", "rated=[]", "overlap=null", "precision=fp32",
        f"positives=[{{source: {lines}, fields: [], share: 1, word_dropout: 0.2}}]",
    )  # fmt: skip
    cluster.pause(job, "update 4 ")
    cluster.time_is_up(job)
    cluster.resume(job)
    assert cluster.finish(job)["Restarts"] == "1"
    assert "resuming after update" in cluster.output(job)

    job = cluster.submit(
        "slurm/evaluate.sbatch", "correlation", "--ratings", rated,
        "--model", tmp_path / "run" / "model", "--metrics=simllm",
    )  # fmt: skip
    cluster.finish(job)
    assert "\nmetric\tspearman" in cluster.output(job)  # below a warning about so few pairs


def test_corpus_job_builds_the_same_corpus_on_ray(cluster, comments, tmp_path):
    source = tmp_path / "comments.txt"
    source.write_text("".join(f"{clean(text)}\n" for text in comments[:300]))
    job = cluster.submit(
        "--nodes=2", "--cpus-per-task=1", "slurm/corpus.sbatch", source, "--out", tmp_path / "ray"
    )
    cluster.finish(job)
    build.build(CorpusConfig((str(source),)), tmp_path / "here")
    for name in ("train.txt", "test.txt", "report.json"):
        assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


def test_scoring_job_writes_a_table_for_each_file(cluster, tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        pair = {"candidate": f"adds {name}", "reference": "adds lists"}
        (tmp_path / "in" / f"{name}.jsonl").write_text(json.dumps(pair) + "\n")
    job = cluster.submit(
        "--nodes=2",
        "--cpus-per-task=1",
        "slurm/score.sbatch",
        "--jsonl",
        f"{tmp_path}/in/*",
        "-o",
        tmp_path / "out",
    )
    cluster.finish(job)
    tables = sorted(file.name for file in (tmp_path / "out").glob("[a-z]*"))
    assert tables == ["a.tsv", "b.tsv", "summary.json"]


def test_acceptance_job_writes_the_figures_of_a_node(cluster, tmp_path):
    """Without a real GPU, the checks run in their reduced form."""
    job = cluster.submit("slurm/gpu_acceptance.sbatch", "--parts", "encoder", "--json", tmp_path / "gpu.json")
    cluster.finish(job)
    assert cluster.output(job).endswith("all checks passed in the reduced form, without a GPU\n")
    assert json.loads((tmp_path / "gpu.json").read_text())["failed"] == []


def test_jobs_must_be_submitted_from_the_checkout(cluster, tmp_path):
    job = cluster.submit(f"--chdir={tmp_path}", ROOT / "slurm" / "evaluate.sbatch")
    cluster.finish(job, "FAILED")
    assert cluster.output(job).endswith("error: submit it from the checkout\n")
