"""The folder of a training run: only files of the same run are replaced."""

import json
import shutil

import pytest

from simllm.errors import InputError
from simllm.io.output_folder import MARKER, OutputFolder
from tests.conftest import ROOT
from tests.train.training_processes import content, pretraining, states
from train.contrastive.config import ContrastiveConfig
from train.runtime.config import load
from train.runtime.training_run import claim, identity

pytestmark = pytest.mark.slow
COMMANDS = {
    "train.pretrain": ["configs/debug.yaml"],
    "train.contrastive": ["configs/contrastive.yaml"],
}


def fill(folder):
    """Write files of a user that are named like files of a run; return the content of the folder."""
    for name in ("config.json", "lock", "log.jsonl", "corpus/train.txt", "model/config.json", "notes.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"my {name}\n")
    (folder / "states" / "state-00000004").mkdir(parents=True)
    (folder / "states" / "state-00000004" / "sha256").write_text("mine\n")
    return content(folder)


@pytest.mark.parametrize("name", COMMANDS)
def test_folder_with_user_files_is_refused(run, tmp_path, name):
    before = fill(tmp_path / "mine")
    status, errors = run(name, *COMMANDS[name], f"out={tmp_path}/mine")
    assert status == 2
    expected = "holds files that simllm did not write (no .simllm there); name a new or empty folder"
    assert errors == f"error: {tmp_path}/mine: {expected}\n"
    assert content(tmp_path / "mine") == before


@pytest.mark.parametrize(
    ("made", "what"),
    [("corpus", "a corpus"), ("model", "a model"), ("states/state-00000008", "a training state")],
)
def test_folders_of_other_commands_are_refused(run, resumable_run, few_comments, made, what):
    before = content(resumable_run)
    status, errors = run("train.pretrain", *pretraining(few_comments, resumable_run / made))
    expected = f"holds {what}; name another folder for a training run"
    assert (status, errors) == (2, f"error: {resumable_run / made}: {expected}\n")
    assert content(resumable_run) == before


def test_run_from_before_a_key_was_added_is_resumed(tmp_path):
    """The stored configuration may name defaults, or lack keys that are newer than the run, at any level."""
    overrides = [f"out={tmp_path / 'run'}", "imitation.pair_weight=0"]
    config = load(ContrastiveConfig, ROOT / "configs" / "longer.yaml", overrides)
    claim(config).close()
    stored = tmp_path / "run" / "config.json"
    values = json.loads(stored.read_text())
    assert "pair_weight" not in values["imitation"]
    values["imitation"] |= {"squared_weight": 0.0}
    values["imitation"]["texts"][0]["variants"] = 0.0
    stored.write_text(json.dumps(values))
    (tmp_path / "run" / "log.jsonl").write_text('{"update": 1}\n')
    claim(config).close()
    other = load(ContrastiveConfig, ROOT / "configs" / "longer.yaml", [*overrides, "imitation.neighbours=2"])
    with pytest.raises(InputError, match="made with another imitation; choose another `out`"):
        claim(other)
    assert identity(config) != identity(other)


@pytest.mark.parametrize("given", ["data/a.txt", "data/*.txt", "link.txt"])
def test_folder_with_what_the_run_reads_is_refused(run, few_comments, tmp_path, given):
    out = tmp_path / "run"
    OutputFolder(out, "a training run").own()
    (out / "data").mkdir()
    shutil.copy(few_comments, out / "data" / "a.txt")
    (tmp_path / "link.txt").symlink_to(out / "data" / "a.txt")
    (out / "config.json").write_text('{"out": "", "updates": 1}')
    before = content(out)
    source = tmp_path / given if given == "link.txt" else out / given
    status, errors = run("train.pretrain", *pretraining(source, out))
    expected = f"training would overwrite {source}, which it reads; choose another `out`"
    assert (status, errors) == (2, f"error: {out}: {expected}\n")
    assert content(out) == before


def test_user_folder_inside_a_run_is_refused(run, few_comments, tmp_path):
    out = tmp_path / "run"
    OutputFolder(out, "a training run").own()
    (out / "corpus").mkdir()
    (out / "corpus" / "train.txt").write_text("mine\n")
    (out / "config.json").write_text('{"out": "", "updates": 1}')
    status, errors = run("train.pretrain", *pretraining(few_comments, out))
    assert status == 2
    assert errors.splitlines()[-1].startswith(
        f"error: {out / 'corpus'}: holds files that simllm did not write"
    )
    assert (out / "corpus" / "train.txt").read_text() == "mine\n"


def test_user_files_in_a_run_are_kept(run, resumable_run, few_comments):
    (resumable_run / "notes.txt").write_text("mine\n")
    (resumable_run / "model" / "notes.txt").write_text("mine\n")
    (states(resumable_run)[0] / "notes.txt").write_text("mine\n")
    notes = [
        resumable_run / "notes.txt",
        resumable_run / "model" / "notes.txt",
        states(resumable_run)[0] / "notes.txt",
    ]
    status, errors = run("train.pretrain", *pretraining(few_comments, resumable_run))
    assert status == 0, errors
    assert [note.read_text() for note in notes] == ["mine\n"] * 3
    assert len(states(resumable_run)) == 3


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
def test_impossible_folder_is_an_error(run, few_comments, tmp_path, kind, message):
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


def test_run_folder_may_be_a_link(run, resumable_run, few_comments, tmp_path):
    (tmp_path / "link").symlink_to(resumable_run)
    status, errors = run("train.pretrain", *pretraining(few_comments, tmp_path / "link"))
    assert status == 0, errors
    assert "resuming after update" in errors
    assert (tmp_path / "link").is_symlink()


def test_second_run_in_one_folder_is_refused(run, few_comments, tmp_path):
    first = run.start("train.pretrain", *pretraining(few_comments, tmp_path / "run", "updates=100000"))
    first.until_written("corpus")
    status, errors = run("train.pretrain", *pretraining(few_comments, tmp_path / "run"))
    first.process.kill()
    first.finish()
    assert (status, errors) == (2, f"error: {tmp_path}/run: another process is training there\n")


@pytest.mark.parametrize(
    ("override", "key"), [("learning_rate=0.02", "learning_rate"), ("objective=masked", "objective")]
)
def test_resume_with_another_configuration_is_refused(run, resumable_run, few_comments, override, key):
    before = content(resumable_run)
    status, errors = run("train.pretrain", *pretraining(few_comments, resumable_run, override))
    assert (status, errors) == (2, f"error: {resumable_run}: made with another {key}; choose another `out`\n")
    assert content(resumable_run) == before


def test_a_trained_model_without_states_is_not_trained_again(run, resumable_run, few_comments):
    shutil.rmtree(resumable_run / "states")
    before = content(resumable_run)
    status, errors = run("train.pretrain", *pretraining(few_comments, resumable_run))
    reason = "has a trained model, but its states are gone; choose another `out`"
    assert (status, errors) == (2, f"error: {resumable_run}: {reason}\n")
    assert content(resumable_run) == before


def test_processes_must_share_the_run_folder(run, few_comments, tmp_path):
    """Processes with separate folders, like machines without a shared disk, are refused."""
    config, *overrides = pretraining(few_comments, "run")
    places = [tmp_path / "one", tmp_path / "other"]
    for place in places:
        place.mkdir()
    started = run.ranks(2, "train.pretrain", ROOT / config, *overrides, folders=places)
    assert [each.finish() for each in started] == [2, 2]
    assert all("not the same folder for all processes" in each.errors for each in started)


def test_leftovers_of_a_killed_save_are_removed(run, resumable_run, few_comments):
    """If a run was killed while it replaced a folder, the old folder is restored."""
    partial = resumable_run / "states" / ".state-00000012.abcd1234.partial"
    partial.mkdir()
    (partial / MARKER).write_text('{"files": []}')
    (partial / "tensors.safetensors").write_bytes(b"half")
    (resumable_run / "states" / ".state-00000012.lock").touch()
    (resumable_run / "model").rename(resumable_run / ".model.abcd1234.old")
    (resumable_run / "shards" / ".train.txt.abcd1234.partial").mkdir()
    (resumable_run / ".log.jsonl.abcd1234.partial").write_text('{"update": 1')
    (resumable_run / "notes.partial").write_text("mine\n")
    model = content(resumable_run / ".model.abcd1234.old")
    status, _ = run("train.pretrain", *pretraining(few_comments, resumable_run, "learning_rate=1"))
    assert status == 2  # recovered only after the configuration was checked
    assert (resumable_run / ".model.abcd1234.old").exists()
    started = run.start("train.pretrain", *pretraining(few_comments, resumable_run))
    started.until_written("training")
    started.process.kill()
    started.finish()
    assert not [path for path in resumable_run.rglob(".*") if path.suffix in (".partial", ".old", ".lock")]
    assert (resumable_run / "notes.partial").read_text() == "mine\n"
    assert content(resumable_run / "model") == model


def test_leftovers_of_a_neighbouring_folder_are_kept(tmp_path):
    """A replacement of `model` does not touch the leftovers of `model.v2`."""
    with OutputFolder(tmp_path / "model.v2", "a model").replacing() as partial:
        (partial / "weights").write_text("two\n")
    (tmp_path / "model.v2").rename(tmp_path / ".model.v2.abcd1234.old")
    for text in ("one\n", "another\n"):
        with OutputFolder(tmp_path / "model", "a model").replacing() as partial:
            (partial / "weights").write_text(text)
    assert (tmp_path / ".model.v2.abcd1234.old" / "weights").read_text() == "two\n"
    with OutputFolder(tmp_path / "model.v2", "a model").replacing():
        pass
    assert not list(tmp_path.glob(".*"))


def test_run_with_a_truncated_log_resumes(run, resumable_run, finished_run, few_comments):
    text = (resumable_run / "log.jsonl").read_text()
    (resumable_run / "log.jsonl").write_text(text[:-40])
    status, errors = run("train.pretrain", *pretraining(few_comments, resumable_run))
    assert status == 0
    assert f"warning: {resumable_run / 'log.jsonl'}, line 2: not a line of a log; left out" in errors
    updates = [json.loads(line)["update"] for line in (resumable_run / "log.jsonl").read_text().splitlines()]
    assert updates == [4, 12, 16, 20, 24]


def test_nothing_is_removed_through_a_link(tmp_path):
    """A stranger's run folder may list files outside of it, behind a link; these files are kept."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("mine\n")
    with OutputFolder(tmp_path / "state", "a training state").replacing() as partial:
        (partial / "weights").write_text("one\n")
    (tmp_path / "state" / "link").symlink_to(tmp_path / "home")
    marker = {"written_by": "simllm", "files": ["weights", "link/thesis.txt"]}
    (tmp_path / "state" / MARKER).write_text(json.dumps(marker))
    OutputFolder(tmp_path / "state").remove()
    assert (tmp_path / "home" / "thesis.txt").read_text() == "mine\n"
    assert not (tmp_path / "state" / "weights").exists()


@pytest.mark.parametrize("name", ["config.json", "log.jsonl", "lock"])
def test_nothing_is_written_through_a_link(run, resumable_run, few_comments, tmp_path, name):
    """In a stranger's run folder, a file that training writes may be a link to any file of the user."""
    text = (resumable_run / name).read_text()
    (tmp_path / "mine").write_text(text)
    (resumable_run / name).unlink()
    (resumable_run / name).symlink_to(tmp_path / "mine")
    status, errors = run("train.pretrain", *pretraining(few_comments, resumable_run))
    assert status == 2
    assert errors.startswith(f"error: {resumable_run / name}: is a link; writing there would change")
    assert (tmp_path / "mine").read_text() == text
