"""A dry run of the session on a rented GPU, on a CPU and in a copy of only what the session needs."""

import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch

from simllm.errors import InputError
from simllm.model import saved_model
from tests.benchmarks import gpu_session
from tests.command import is_running
from tests.conftest import ROOT
from tests.train.contrastive.one_update import overrides
from train.corpus.sources import match_files
from train.distill.teachers import load

NEEDED = ["simllm", "train", "configs", "tests/benchmarks", "checkpoints/default"]


@pytest.fixture
def tree(tmp_path):
    for name in NEEDED:
        shutil.copytree(ROOT / name, tmp_path / "tree" / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "tests" / "__init__.py", tmp_path / "tree" / "tests")
    return tmp_path / "tree"


@pytest.fixture
def session(tree):
    """Return a function that starts the command `tests.benchmarks.gpu_session` in the copy."""

    def start(*arguments):
        command = [sys.executable, "-m", "tests.benchmarks.gpu_session", *map(str, arguments)]
        environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True)

    return start


def log(work):
    """Return the log of the training after the trial."""
    file = work / "run" / "log.jsonl"
    lines = file.read_text().splitlines() if (work / "updates.json").is_file() and file.is_file() else []
    return [json.loads(line) for line in lines]


def stop_after_evaluation(process, work, lines):
    """Send SIGTERM to a session as soon as its training has logged more than so many lines."""
    while len(log(work)) <= lines:
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 0, process.stdout.read()


def results(out):
    """Check the sizes of the results; return `session.json`, and the model's files by their names."""
    sizes = [file.stat().st_size for file in out.iterdir()]
    assert len(sizes) <= 8
    assert max(sizes) < 16 << 20
    whole = b"".join(file.read_bytes() for file in sorted(out.glob("model.tar.*")))
    with tarfile.open(fileobj=BytesIO(whole)) as archive:
        archive.extractall(out.parent / f"{out.name}-model", filter="data")
    return json.loads((out / "session.json").read_text()), saved_model.load(out.parent / f"{out.name}-model")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_session_without_a_gpu_is_refused(call, tmp_path):
    done = call(gpu_session, "run", tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr == "error: no GPU is here; for a dry run, use --device cpu\n"
    assert not (tmp_path / "out").exists()


def test_files_with_equal_names_are_carried_apart(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "texts.txt").write_text(name)
    pack = gpu_session.Packer(tmp_path / "data")
    pattern = pack(f"{tmp_path}/*/texts.txt").replace("${data}", f"{tmp_path}/data")
    assert [file.read_text() for file in match_files(pattern)] == ["a", "b"]
    with pytest.raises(InputError, match="a session carries files, and no folders"):
        pack(f"{tmp_path}/a")


@pytest.fixture
def carry(teachers, tmp_path):
    """Return a folder with what a session carries, made of few words."""
    folder = tmp_path / "carry"
    (folder / "data").mkdir(parents=True)
    gpu_session.pack_teacher(teachers["bert"], folder / gpu_session.TEACHER)
    with tarfile.open(folder / gpu_session.DATA, "w:xz") as archive:
        archive.add(folder / "data", "data")
    (folder / gpu_session.TEXTS).write_bytes(lzma.compress(b"first\n"))
    gpu_session.write_sums(folder)
    return folder


@pytest.fixture
def begin(tmp_path):
    """Return a function that begins a session in this process, in the same place each time."""
    handler = signal.getsignal(signal.SIGTERM)
    yield lambda *carried: gpu_session.Session(tmp_path / "out", carried, tmp_path / "work", 90, cpu=True)
    signal.signal(signal.SIGTERM, handler)


def test_the_user_s_folder_is_not_used(begin, tmp_path):
    for name in ("run/states", "teacher"):
        (tmp_path / "work" / name).mkdir(parents=True)
    with pytest.raises(InputError, match="holds files that simllm did not write"):
        begin()


def test_what_is_newly_carried_is_unpacked(begin, carry, tmp_path):
    begin(carry).unpack()
    assert begin(carry).is_unpacked()
    assert begin().is_unpacked()
    (carry / gpu_session.TEXTS).write_bytes(lzma.compress(b"second\n"))
    gpu_session.write_sums(carry)
    session = begin(carry)
    assert not session.is_unpacked()
    session.unpack()
    assert session.is_unpacked()
    assert (tmp_path / "work" / "data" / "texts.txt").read_text() == "second\n"

    # A resumed training needs the texts of its start.
    (tmp_path / "work" / "run" / "states" / "state-00000010").mkdir(parents=True)
    (carry / gpu_session.TEXTS).write_bytes(lzma.compress(b"third\n"))
    gpu_session.write_sums(carry)
    with pytest.raises(InputError, match="began with other data"):
        begin(carry)
    assert begin().is_unpacked()


def test_results_of_another_session_are_kept(begin, tmp_path):
    (tmp_path / "out").mkdir()
    begin()
    (tmp_path / "out" / "session.json").write_text("mine")
    with pytest.raises(InputError, match="name a new or empty folder for the results"):
        begin()
    assert (tmp_path / "out" / "session.json").read_text() == "mine"


def test_a_missing_folder_or_too_little_time_creates_nothing(begin, tmp_path):
    with pytest.raises(InputError, match="missing: no SHA256SUMS; expected a folder that `pack`"):
        begin(tmp_path / "missing")
    with pytest.raises(InputError, match="--seconds 30: expected at least 60"):
        gpu_session.Session(tmp_path / "out", [], tmp_path / "work", 30, cpu=True)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "work").exists()


def cut_off(file):
    file.write_bytes(file.read_bytes()[:-1])


@pytest.mark.parametrize("name", [gpu_session.DATA, gpu_session.TEACHER, gpu_session.TEXTS])
@pytest.mark.parametrize("damage", [cut_off, Path.unlink])
def test_what_is_damaged_is_told_at_once(begin, carry, name, damage):
    damage(carry / name)
    with pytest.raises(InputError, match=f"carry/{name}: missing or damaged; carry it again"):
        begin(carry)


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_a_teacher_in_8_bits_gives_the_same_embeddings(teachers, short_texts, kind, tmp_path):
    gpu_session.pack_teacher(teachers[kind], tmp_path / "teacher.npz")
    gpu_session.unpack_teacher(tmp_path / "teacher.npz", tmp_path / "teacher")
    folders = teachers[kind], tmp_path / "teacher"
    before, after = (load(folder, torch.device("cpu"))(short_texts[:50]) for folder in folders)
    cosines = (before * after).sum(1) / np.linalg.norm(before, axis=1) / np.linalg.norm(after, axis=1)
    assert cosines.mean() > 0.999
    assert cosines.min() > 0.995


@pytest.mark.slow
def test_sessions_resume_and_end_in_time(session, update_folder, teachers, tmp_path):
    texts = f"texts: [{{source: {update_folder}/train.txt}}], teachers: [{teachers['bert']}]"
    imitation = f"imitation={{{texts}, groups: 16, cosine_weight: 1, similarity_weight: 1}}"
    kept = (update_folder / "train.txt").read_text().splitlines()
    pairs = [
        {"reference": a, "candidate": b, "rating": 1}
        for a, b in zip(kept[200:210], kept[210:220], strict=True)
    ]
    (update_folder / "excluded.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    values = [*overrides(update_folder), f"exclude=[{update_folder}/excluded.jsonl]", imitation, "pairs=8"]
    pack = session("pack", "configs/contrastive.yaml", tmp_path / "carry", *values)
    assert pack.wait(120) == 0
    packed = (
        lzma.decompress((tmp_path / "carry" / "second" / "texts.txt.xz").read_bytes()).decode().splitlines()
    )
    assert pack.stdout.read().splitlines()[-1] == f"{len(packed):,} of {len(packed):,} texts"
    assert len(kept) - 30 < len(packed) == len(set(packed))
    assert set(packed) <= {*kept[:200], *kept[220:]}
    carry = [tmp_path / "carry" / "first", tmp_path / "carry" / "second"]
    # The training needs nothing but what was carried.
    hidden = update_folder.rename(update_folder.with_name("hidden"))
    try:
        work, command = tmp_path / "work", ["--device", "cpu", "--acceptance", "0", "--training", "90"]
        first = session("run", tmp_path / "out-1", "--carry", *carry, "--work", work, *command)
        stop_after_evaluation(first, work, 0)
        facts, _ = results(tmp_path / "out-1")
        assert (facts["training"], facts["can_resume"]) == (75, True)

        # A killed session does not leave its training on the GPU.
        killed = session("run", tmp_path / "out-killed", "--work", work, *command)
        children = Path(f"/proc/{killed.pid}/task/{killed.pid}/children")
        while not (found := children.read_text().split()):
            time.sleep(0.05)
        killed.kill()
        killed.wait()
        while is_running(found[0]):
            time.sleep(0.05)

        before = len(log(work))
        again = session("run", tmp_path / "out-2", "--work", work, *command)
        stop_after_evaluation(again, work, before)
        facts, exported = results(tmp_path / "out-2")
        assert "resuming after update" in (tmp_path / "out-2" / "train.log").read_text()
        updates = [line["update"] for line in log(work)]
        assert updates == sorted(set(updates))

        # In a new place, training starts from the model of the session before, and ends in time.
        new, parts = tmp_path / "new", ["--acceptance", "600", "--parts", "scores"]
        command = ["--device", "cpu", *parts, "--training", "1", "--seconds", "1500"]
        last = session(
            "run", tmp_path / "out-3", "--carry", *carry, tmp_path / "out-2", "--work", new, *command
        )
        assert last.wait(600) == 0, last.stdout.read()
        facts, _ = results(tmp_path / "out-3")
        assert (facts["training"], facts["acceptance"]) == (0, 0)
        assert not json.loads((tmp_path / "out-3" / "gpu.json").read_text())["failed"]
        assert json.loads((new / "run" / "config.json").read_text())["model"] == str(new / "start")
        assert saved_model.load(new / "start").hash == exported.hash
    finally:
        hidden.rename(update_folder)
