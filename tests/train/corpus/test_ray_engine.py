"""Building of a corpus on a Ray cluster."""

import os
import random
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm.errors import InputError
from tests.conftest import ROOT
from train.corpus import build
from train.corpus.config import CorpusConfig
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.deduplicate import SIGNATURE, NearDuplicates, find_originals
from train.corpus.engine import OneMachine
from train.corpus.parts import TEXT, Tally
from train.corpus.ray_engine import Group, RayEngine, SignaturesOnCluster, cluster

FILES = ("train.txt", "test.txt", "comments.jsonl", "pairs.jsonl", "report.json")


class HereAndNow:
    """Stand-in for Ray that runs each task at once, in this process."""

    def put(self, value):
        return value

    get = put

    def cluster_resources(self):
        return {"CPU": 3}

    def remote(self, num_returns, **_):
        class Task:
            def __init__(self, function):
                self.remote = function

        return Task


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=8), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
def test_shuffles_find_the_originals_that_one_machine_finds(parts, chance):
    """The texts are spread over several parts; each signature equals or resembles one of ten signatures."""
    base = np.random.default_rng(7).integers(0, 256, (10, SIGNATURE), dtype=np.uint8)
    tables, start, groups = [], 0, []
    for part in parts:
        texts, signatures = np.zeros(len(part), TEXT), np.empty((len(part), SIGNATURE), np.uint8)
        for row, kind in enumerate(part):
            changed = chance.choice([0, 0, 1, 3, 20])
            signatures[row] = base[kind]
            signatures[row, chance.sample(range(SIGNATURE), changed)] ^= 1
            texts["identity"][row] = kind + 1 if not changed else chance.getrandbits(60) + 100
        tables.append((texts, signatures))
        groups.append(Group([{"texts": texts, "signatures": signatures}], start, len(part)))
        start += len(part)
    identities = np.concatenate([texts["identity"] for texts, _ in tables])
    rows = np.concatenate([signatures for _, signatures in tables])
    on_cluster = SignaturesOnCluster(RayEngine(HereAndNow()), groups)
    assert np.array_equal(on_cluster.find_originals(identities), find_originals(identities, rows))
    chosen = np.arange(len(rows)) % 3 == 0
    assert np.array_equal(on_cluster.select(chosen), rows[chosen])
    others = NearDuplicates(rows[chosen])
    assert np.array_equal(on_cluster.near(others), others(rows))


@pytest.mark.slow
def test_a_cluster_builds_the_same_corpus_though_a_node_is_lost(ray_cluster, comments, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "BATCH", 4000)
    chance = random.Random(0)
    lines = [" ".join(text.split()) for text in comments]
    lines += [" ".join([*text.split()[:-1], "again"]) for text in chance.sample(lines, len(lines) // 2)]
    (tmp_path / "many.txt").write_text("\n".join(lines))
    config = CorpusConfig((str(tmp_path / "many.txt"),))
    build.build(config, tmp_path / "here", OneMachine(1))
    parts = tmp_path / ".ray.parts"
    lost = []

    def lose_a_node():
        while len(list(parts.glob("[0-9]*.npz"))) < 3:
            time.sleep(0.01)
        ray_cluster.remove_node(next(iter(ray_cluster.worker_nodes)), allow_graceful=False)
        lost.append(len(list(parts.glob("[0-9]*.npz"))))

    thread = threading.Thread(target=lose_a_node, daemon=True)
    thread.start()
    with cluster(ray_cluster.address) as engine:
        built = build.build(config, tmp_path / "ray", engine)
    thread.join()
    assert lost
    assert built["counts"]["near duplicate"] > 10
    for name in FILES:
        assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


@pytest.mark.slow
def test_a_lost_cluster_is_one_line_and_the_same_command_continues(ray_cluster, tmp_path, monkeypatch):
    chance = random.Random(0)
    names = ["".join(chance.choices("abcdefgh", k=6)) for _ in range(2000)]
    lines = (" ".join(chance.choices(names, k=9)) + "\n" for _ in range(60_000))
    source = tmp_path / "many.txt"
    source.write_text("".join(lines))
    # Smaller parts than usual: fewer texts are then enough for some parts to be missing.
    monkeypatch.setattr(build, "BATCH", 400_000)
    code = "from train.corpus import __main__, build; build.BATCH = 400_000; exit(__main__.main())"
    words = [sys.executable, "-c", code, "build", str(source), "--out", "corpus", "--engine", "ray"]
    parts = tmp_path / ".corpus.parts"
    with subprocess.Popen(
        [*words, "--address", ray_cluster.address], cwd=tmp_path, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as build_:  # fmt: skip
        while build_.poll() is None and not list(parts.glob("[0-9]*.npz")):
            time.sleep(0.01)
        ray_cluster.shutdown()
        output, errors = build_.communicate(timeout=120)
    assert build_.returncode in (1, 2)
    assert output == ""
    assert errors.count("\nerror: ") + errors.startswith("error: ") == 1
    assert errors.endswith("rerun the same command to resume\n")
    assert not (tmp_path / "corpus").exists()
    kept = {file.name: file.stat().st_mtime_ns for file in parts.glob("[0-9]*.npz")}
    assert kept
    config = CorpusConfig((str(source),))
    made = build.make_parts(config, parts, OneMachine(1), ExcludedTexts(()), Tally())
    assert kept.items() <= {part.file.name: part.file.stat().st_mtime_ns for part in made}.items()


@pytest.mark.parametrize("answer", [b"HTTP/1.0 400 Bad Request\r\n\r\n", b""])
def test_an_address_of_another_program_is_refused(answer, monkeypatch):
    monkeypatch.delenv("RAY_USE_TLS", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def reply():
            client, _ = server.accept()
            with client:
                client.recv(100)
                client.sendall(answer)

        thread = threading.Thread(target=reply)
        thread.start()
        with (
            pytest.raises(InputError, match="another program answers"),
            cluster(f"127.0.0.1:{server.getsockname()[1]}"),
        ):
            pass
        thread.join()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--engine", "ray", "--workers", "2"), "--workers goes with --engine local"),
        (("--address", "auto"), "--address goes with --engine ray"),
        (("--engine", "ray", "--address", "127.0.0.1:1"), "no Ray cluster at 127.0.0.1:1"),
    ],
)
def test_wrong_engines_are_one_line(command, tmp_path, words, message):
    (tmp_path / "a.txt").write_text("returns the name\n")
    done = command("build", tmp_path / "a.txt", "--out", tmp_path / "out", *words)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.txt"]
