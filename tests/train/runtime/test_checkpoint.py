"""Saving and loading of the training state: no failure loses a saved state."""

import errno
import hashlib
import os
import resource
import shutil
import sys

import pytest
import torch
from torch import nn

from simllm.errors import InputError
from simllm.io.output_folder import MARKER, OutputFolder
from tests.train.training_processes import content
from train.runtime.checkpoint import TrainingState

RUN = "what is computed"


def new_state(run=RUN):
    torch.manual_seed(0)
    model = nn.Linear(30, 30)
    adam = torch.optim.AdamW(model.parameters())
    return TrainingState(model, adam, torch.amp.GradScaler("cpu", enabled=False), run)


def state_after(update):
    """Return the state after this number of updates."""
    state = new_state()
    for _ in range(update):
        state.model(torch.ones(30)).sum().backward()
        state.adam.step()
        state.adam.zero_grad()
    state.progress.update = update
    return state


def equal(one, two):
    a, b = one.model.state_dict(), two.model.state_dict()
    return one.progress == two.progress and all(torch.equal(a[name], b[name]) for name in a)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def saved(tmp_path):
    """Write a folder with the states after one and two updates."""
    for update in (1, 2):
        state_after(update).save(tmp_path / "states")
    return tmp_path / "states"


def test_saved_state_is_restored_exactly(saved):
    state = new_state()
    state.resume(saved)
    assert equal(state, state_after(2))
    state.model(torch.ones(30)).sum().backward()
    state.adam.step()
    state.progress.update += 1
    assert equal(state, state_after(3))


def test_only_the_newest_two_are_kept(saved):
    state_after(5).save(saved)
    assert names(saved) == ["state-00000002", "state-00000005"]


def test_unreadable_state_is_an_error_and_is_kept(saved, monkeypatch):
    """A state that cannot be read is not removed, because it may be readable at the next start."""
    before = content(saved)

    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(hashlib, "file_digest", fail)
        with pytest.raises(InputError, match=r"state-00000002: cannot be read \(Input/output error\)"):
            new_state().resume(saved)
    assert content(saved) == before
    state = new_state()
    state.resume(saved)
    assert equal(state, state_after(2))


def test_unreadable_states_folder_is_an_error(saved, monkeypatch):
    """If an unreadable folder counted as empty, the training would start anew and replace its model."""
    shutil.rmtree(saved)
    saved.write_text("no folder\n")
    with pytest.raises(InputError, match="cannot be read"):
        new_state().resume(saved)


def damage(state, kind):
    file = state / "tensors.safetensors"
    if kind == "missing":
        file.unlink()
    elif kind == "cut off":
        file.write_bytes(file.read_bytes()[:-100])
    else:
        data = bytearray(file.read_bytes())
        data[-50] ^= 1
        file.write_bytes(data)


@pytest.mark.parametrize("kind", ["missing", "cut off", "flipped bit"])
def test_state_before_a_damaged_one_is_used(saved, capsys, kind):
    damage(saved / "state-00000002", kind)
    before, state = content(saved), new_state()
    state.resume(saved)
    assert equal(state, state_after(1))
    problem = "no tensors.safetensors" if kind == "missing" else "checksum differs"
    assert capsys.readouterr().err == f"warning: {saved / 'state-00000002'} is damaged ({problem})\n"
    assert content(saved) == before
    state_after(2).save(saved)  # this update is reached again
    state.resume(saved)
    assert equal(state, state_after(2))


def test_damaged_states_do_not_count_as_the_newest_two(saved):
    """The two newest intact states are kept, even if there are damaged states of later updates."""
    for update in (30, 40):
        shutil.copytree(saved / "state-00000002", saved / f"state-{update:08d}")
        damage(saved / f"state-{update:08d}", "flipped bit")
    for update in (3, 4, 5):
        state_after(update).save(saved)
        state = new_state()
        state.resume(saved)
        assert equal(state, state_after(update))
    assert names(saved) == [f"state-{update:08d}" for update in (4, 5, 30, 40)]


def test_nothing_is_changed_if_every_state_is_damaged(saved):
    for state in saved.iterdir():
        damage(state, "cut off")
    before = content(saved)
    with pytest.raises(InputError, match="every saved state is damaged; choose another `out`"):
        new_state().resume(saved)
    assert content(saved) == before


def test_a_state_without_a_marker_is_used_but_never_removed(saved):
    for state in saved.iterdir():
        (state / MARKER).unlink()
    state = new_state()
    state.resume(saved)
    assert equal(state, state_after(2))
    state_after(3).save(saved)
    state_after(4).save(saved)
    assert names(saved) == [f"state-0000000{update}" for update in (1, 2, 3, 4)]


def test_irreplaceable_damaged_state_is_an_error_at_once(saved):
    damage(saved / "state-00000002", "cut off")
    (saved / "state-00000002" / MARKER).unlink()
    before = content(saved)
    message = r"state-00000002 is damaged \(checksum differs\) and has no \.simllm; move it away"
    with pytest.raises(InputError, match=message):
        new_state().resume(saved)
    assert content(saved) == before


def test_a_state_of_another_configuration_is_refused(saved):
    with pytest.raises(InputError, match="saved under another configuration"):
        new_state("something else").resume(saved)


def test_a_state_of_another_version_is_refused(saved):
    state = new_state()
    state.model = nn.Linear(30, 29)
    with pytest.raises(InputError, match="saved by another version"):
        state.resume(saved)


@pytest.mark.parametrize("limit", [0, 10, 200, 5000, 9000])
def test_full_disk_keeps_saved_states(saved, limit):
    before, next_one = content(saved), state_after(3)

    def save():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with pytest.raises(InputError, match="cannot be written"):
            next_one.save(saved)

    assert in_a_child(save) == 0
    assert content(saved) == before
    assert names(saved) == ["state-00000001", "state-00000002"]
    next_one.save(saved)
    assert names(saved) == ["state-00000002", "state-00000003"]


@pytest.mark.slow
def test_killed_at_any_system_call_of_a_save(saved, tmp_path):
    """A save is killed before its n-th system call that opens, renames, makes or removes a file or folder."""
    next_one, expected = state_after(3), {2: state_after(2), 3: state_after(3)}
    resumed = set()
    for call in range(1, 200):
        folder = tmp_path / f"killed-{call}"
        shutil.copytree(saved, folder)
        status = in_a_child(lambda: next_one.save(folder), kill_at=call)  # noqa: B023
        state = new_state()
        state.resume(folder)
        resumed.add(state.progress.update)
        assert equal(state, expected[state.progress.update])
        OutputFolder(folder).recover_inside()
        next_one.save(folder)
        assert names(folder) == ["state-00000002", "state-00000003"]
        if status == 0:
            break
    assert call > 30
    assert resumed == {2, 3}


@pytest.mark.slow
def test_killed_at_any_system_call_of_a_replacement(tmp_path):
    """After the kill, the folder is completely old or completely new, and the user's files are there."""
    whole = ({"a": "old", "b": "old"}, {"b": "new", "c": "new"})

    def write(folder, number):
        with OutputFolder(folder, "results").replacing() as partial:
            for name, text in whole[number].items():
                (partial / name).write_text(text)

    found = []
    for call in range(1, 200):
        folder = tmp_path / str(call) / "folder"
        write(folder, 0)
        (folder / "notes").write_text("mine")
        status = in_a_child(lambda: write(folder, 1), kill_at=call)  # noqa: B023
        OutputFolder(folder.parent).recover_inside()
        after = {path.name: path.read_text() for path in folder.iterdir() if path.name != MARKER}
        assert after.pop("notes") == "mine"
        found.append(whole.index(after))
        assert names(folder.parent) == ["folder"]
        write(folder, 1)
        if status == 0:
            break
    assert found == sorted(found)
    assert set(found) == {0, 1}


CALLS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "shutil.rmtree"}


def in_a_child(work, kill_at=0):
    """Run a function in a fork of this process, which exits before its n-th system call of `CALLS`.

    Returns the exit status: 0 for success, 9 for the kill, 1 for an exception.
    """
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        calls = 0

        def count(event, _):
            nonlocal calls
            if event in CALLS:
                calls += 1
                if calls == kill_at:
                    os._exit(9)

        sys.addaudithook(count)
        work()
        os._exit(0)
    except BaseException as error:
        sys.__stderr__.write(f"{error!r}\n")
    finally:
        os._exit(1)
