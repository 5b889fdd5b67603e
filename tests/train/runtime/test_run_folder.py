"""The folder of a training run: what is in it is never replaced, unless it is of that run."""

import json
import shutil

import pytest

from simllm.io import folders
from tests.conftest import ROOT
from tests.train.runs import content, pretraining, states

COMMANDS = {
    "train.pretrain": ["configs/debug.yaml"],
    "train.contrastive": ["configs/contrastive.yaml"],
}


def fill(folder):
    """The files of a user, with the names of the files of a run."""
    for name in ("config.json", "lock", "log.jsonl", "corpus/train.txt", "model/config.json", "notes.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"my {name}\n")
    (folder / "states" / "state-00000004").mkdir(parents=True)
    (folder / "states" / "state-00000004" / "sha256").write_text("mine\n")
    return content(folder)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_files_of_a_user_are_refused(run, tmp_path, name):
    before = fill(tmp_path / "mine")
    status, errors = run(name, *COMMANDS[name], f"out={tmp_path}/mine")
    assert status == 2
    expected = "holds files that simllm did not write (no .simllm there); name a new or empty folder"
    assert errors == f"error: {tmp_path}/mine: {expected}\n"
    assert content(tmp_path / "mine") == before


@pytest.mark.parametrize("made", ["corpus", "model", "states/state-00000008"])
def test_folders_that_other_commands_wrote_are_refused(run, begun, few_comments, made):
    before = content(begun)
    status, errors = run("train.pretrain", *pretraining(few_comments, begun / made))
    expected = "holds something else than a training run; name a new or empty folder"
    assert (status, errors) == (2, f"error: {begun / made}: {expected}\n")
    assert content(begun) == before


def test_a_folder_within_the_run_that_a_user_wrote_is_refused(run, few_comments, tmp_path):
    out = tmp_path / "run"
    folders.own(out)
    (out / "corpus").mkdir()
    (out / "corpus" / "train.txt").write_text("mine\n")
    (out / "config.json").write_text('{"out": "", "updates": 1}')
    status, errors = run("train.pretrain", *pretraining(few_comments, out))
    assert status == 2
    assert errors.splitlines()[-1].startswith(
        f"error: {out / 'corpus'}: holds files that simllm did not write"
    )
    assert (out / "corpus" / "train.txt").read_text() == "mine\n"


def test_other_files_in_a_run_are_kept(run, begun, few_comments):
    (begun / "notes.txt").write_text("mine\n")
    (begun / "model" / "notes.txt").write_text("mine\n")
    (states(begun)[0] / "notes.txt").write_text("mine\n")
    notes = [begun / "notes.txt", begun / "model" / "notes.txt", states(begun)[0] / "notes.txt"]
    status, errors = run("train.pretrain", *pretraining(few_comments, begun))
    assert status == 0, errors
    assert [note.read_text() for note in notes] == ["mine\n"] * 3
    assert len(states(begun)) == 3


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("file", "is not a folder"),
        ("inside a file", "is not a folder"),
        ("loop", "is a loop of links"),
        ("long", "File name too long"),
        ("read-only", "cannot be written"),
    ],
)
def test_an_impossible_folder_is_named(run, few_comments, tmp_path, kind, message):
    (tmp_path / "file").write_text("mine\n")
    (tmp_path / "loop").symlink_to("loop")
    places = {
        "file": tmp_path / "file", "inside a file": tmp_path / "file" / "run", "loop": tmp_path / "loop",
        "long": tmp_path / ("x" * 300), "read-only": "/proc/run",
    }  # fmt: skip
    status, errors = run("train.pretrain", *pretraining(few_comments, places[kind]))
    assert status == 2
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert message in errors
    assert (tmp_path / "file").read_text() == "mine\n"


def test_a_link_to_a_run_is_the_run(run, begun, few_comments, tmp_path):
    (tmp_path / "link").symlink_to(begun)
    status, errors = run("train.pretrain", *pretraining(few_comments, tmp_path / "link"))
    assert status == 0, errors
    assert "resuming after update" in errors
    assert (tmp_path / "link").is_symlink()


def test_two_runs_do_not_share_a_folder(run, few_comments, tmp_path):
    first = run.start("train.pretrain", *pretraining(few_comments, tmp_path / "run", "updates=100000"))
    first.until("corpus")
    status, errors = run("train.pretrain", *pretraining(few_comments, tmp_path / "run"))
    first.process.kill()
    first.finish()
    assert (status, errors) == (2, f"error: {tmp_path}/run: another process is training there\n")


@pytest.mark.parametrize(
    ("override", "key"), [("learning_rate=0.02", "learning_rate"), ("objective=masked", "objective")]
)
def test_another_configuration_does_not_resume(run, begun, few_comments, override, key):
    before = content(begun)
    status, errors = run("train.pretrain", *pretraining(few_comments, begun, override))
    assert (status, errors) == (2, f"error: {begun}: made with another {key}; choose another `out`\n")
    assert content(begun) == before


def test_a_trained_model_without_states_is_not_trained_again(run, begun, few_comments):
    shutil.rmtree(begun / "states")
    before = content(begun)
    status, errors = run("train.pretrain", *pretraining(few_comments, begun))
    reason = "has a trained model, but its states are gone; choose another `out`"
    assert (status, errors) == (2, f"error: {begun}: {reason}\n")
    assert content(begun) == before


def test_processes_that_share_no_folder_do_not_train(run, few_comments, tmp_path):
    """As on two machines whose disks are their own."""
    config, *overrides = pretraining(few_comments, "run")
    places = [tmp_path / "one", tmp_path / "other"]
    for place in places:
        place.mkdir()
    started = run.ranks(2, "train.pretrain", ROOT / config, *overrides, folders=places)
    assert [each.finish() for each in started] == [2, 2]
    assert all("not the same folder for all processes" in each.errors for each in started)


def test_leftovers_of_a_killed_save_are_removed(run, begun, few_comments):
    """And a folder whose replacement was killed half-way is in its place again."""
    partial = begun / "states" / ".state-00000012.abcd1234.partial"
    partial.mkdir()
    (partial / folders.MARKER).write_text('{"files": []}')
    (partial / "tensors.safetensors").write_bytes(b"half")
    (begun / "states" / ".state-00000012.lock").touch()
    (begun / "model").rename(begun / ".model.abcd1234.old")
    (begun / "shards" / ".train.txt.abcd1234.partial").mkdir()
    model = content(begun / ".model.abcd1234.old")
    status, _ = run("train.pretrain", *pretraining(few_comments, begun, "learning_rate=1"))
    assert status == 2  # recovered only once the run is known to be the same
    assert (begun / ".model.abcd1234.old").exists()
    started = run.start("train.pretrain", *pretraining(few_comments, begun))
    started.until("training")
    started.process.kill()
    started.finish()
    assert not [path for path in begun.rglob(".*") if path.suffix in (".partial", ".old", ".lock")]
    assert content(begun / "model") == model


def test_a_neighbours_leftovers_are_its_own(tmp_path):
    """`model.v2` is another folder than `model`, also while it is being replaced."""
    with folders.replacing(tmp_path / "model.v2") as partial:
        (partial / "weights").write_text("two\n")
    (tmp_path / "model.v2").rename(tmp_path / ".model.v2.abcd1234.old")
    for text in ("one\n", "another\n"):
        with folders.replacing(tmp_path / "model") as partial:
            (partial / "weights").write_text(text)
    assert (tmp_path / ".model.v2.abcd1234.old" / "weights").read_text() == "two\n"
    with folders.replacing(tmp_path / "model.v2"):
        pass
    assert not list(tmp_path.glob(".*"))


def test_a_cut_off_log_does_not_prevent_a_resume(run, begun, finished, few_comments):
    text = (begun / "log.jsonl").read_text()
    (begun / "log.jsonl").write_text(text[:-40])
    status, errors = run("train.pretrain", *pretraining(few_comments, begun))
    assert status == 0
    assert f"warning: {begun / 'log.jsonl'}, line 2: not a line of a log; left out" in errors
    updates = [json.loads(line)["update"] for line in (begun / "log.jsonl").read_text().splitlines()]
    assert updates == [4, 12, 16, 20, 24]


def test_nothing_is_removed_through_a_link(tmp_path):
    """Such as in a run from a stranger, whose marker claims that simllm wrote there."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("mine\n")
    with folders.replacing(tmp_path / "state") as partial:
        (partial / "weights").write_text("one\n")
    (tmp_path / "state" / "link").symlink_to(tmp_path / "home")
    marker = {"written_by": "simllm", "files": ["weights", "link/thesis.txt"]}
    (tmp_path / "state" / folders.MARKER).write_text(json.dumps(marker))
    folders.remove(tmp_path / "state")
    assert (tmp_path / "home" / "thesis.txt").read_text() == "mine\n"
    assert not (tmp_path / "state" / "weights").exists()
