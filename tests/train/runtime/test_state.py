"""The training state: whatever happens while it is saved or read, nothing that was saved is lost."""

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
from simllm.io import folders
from tests.train.runs import content
from train.runtime.state import TrainingState

RUN = "what is computed"


def fresh(run=RUN):
    torch.manual_seed(0)
    model = nn.Linear(30, 30)
    adam = torch.optim.AdamW(model.parameters())
    return TrainingState(model, adam, torch.amp.GradScaler("cpu", enabled=False), run)


def at(update):
    """The state after so many updates."""
    state = fresh()
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
    """A folder with the states after one and two updates."""
    for update in (1, 2):
        at(update).save(tmp_path / "states")
    return tmp_path / "states"


def test_a_saved_state_is_restored_exactly(saved):
    state = fresh()
    state.resume(saved)
    assert equal(state, at(2))
    state.model(torch.ones(30)).sum().backward()
    state.adam.step()
    state.progress.update += 1
    assert equal(state, at(3))


def test_only_the_newest_two_are_kept(saved):
    at(5).save(saved)
    assert names(saved) == ["state-00000002", "state-00000005"]


def test_a_state_that_cannot_be_read_is_an_error_and_stays(saved, monkeypatch):
    """It may be readable at the next start."""
    before = content(saved)

    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(hashlib, "file_digest", fail)
        with pytest.raises(InputError, match=r"state-00000002: cannot be read \(Input/output error\)"):
            fresh().resume(saved)
    assert content(saved) == before
    state = fresh()
    state.resume(saved)
    assert equal(state, at(2))


def test_a_folder_of_states_that_cannot_be_read_is_an_error(saved, monkeypatch):
    """Taken for empty, the training would begin anew and replace its model."""
    shutil.rmtree(saved)
    saved.write_text("no folder\n")
    with pytest.raises(InputError, match="cannot be read"):
        fresh().resume(saved)


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
def test_instead_of_a_damaged_state_the_one_before_it_is_used(saved, capsys, kind):
    damage(saved / "state-00000002", kind)
    before, state = content(saved), fresh()
    state.resume(saved)
    assert equal(state, at(1))
    problem = "no tensors.safetensors" if kind == "missing" else "checksum differs"
    assert capsys.readouterr().err == f"warning: {saved / 'state-00000002'} is damaged ({problem})\n"
    assert content(saved) == before
    at(2).save(saved)  # reached again
    state.resume(saved)
    assert equal(state, at(2))


def test_damaged_states_do_not_push_out_good_ones(saved):
    """They may be of later updates than what is saved next, when a signal came."""
    for update in (30, 40):
        shutil.copytree(saved / "state-00000002", saved / f"state-{update:08d}")
        damage(saved / f"state-{update:08d}", "flipped bit")
    for update in (3, 4, 5):
        at(update).save(saved)
        state = fresh()
        state.resume(saved)
        assert equal(state, at(update))
    assert names(saved) == [f"state-{update:08d}" for update in (4, 5, 30, 40)]


def test_when_every_state_is_damaged_nothing_is_changed(saved):
    for state in saved.iterdir():
        damage(state, "cut off")
    before = content(saved)
    with pytest.raises(InputError, match="every saved state is damaged; choose another `out`"):
        fresh().resume(saved)
    assert content(saved) == before


def test_a_state_without_a_marker_is_used_but_never_removed(saved):
    for state in saved.iterdir():
        (state / folders.MARKER).unlink()
    state = fresh()
    state.resume(saved)
    assert equal(state, at(2))
    at(3).save(saved)
    at(4).save(saved)
    assert names(saved) == [f"state-0000000{update}" for update in (1, 2, 3, 4)]


def test_a_damaged_state_that_may_not_be_replaced_is_named_at_once(saved):
    damage(saved / "state-00000002", "cut off")
    (saved / "state-00000002" / folders.MARKER).unlink()
    before = content(saved)
    message = r"state-00000002 is damaged \(checksum differs\) and has no \.simllm; move it away"
    with pytest.raises(InputError, match=message):
        fresh().resume(saved)
    assert content(saved) == before


def test_a_state_of_another_configuration_is_refused(saved):
    with pytest.raises(InputError, match="saved under another configuration"):
        fresh("something else").resume(saved)


def test_a_state_of_another_version_is_refused(saved):
    state = fresh()
    state.model = nn.Linear(30, 29)
    with pytest.raises(InputError, match="saved by another version"):
        state.resume(saved)


@pytest.mark.parametrize("limit", [0, 10, 200, 5000, 9000])
def test_a_full_disk_loses_nothing(saved, limit):
    before, next_one = content(saved), at(3)

    def save():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with pytest.raises(InputError, match="cannot be written"):
            next_one.save(saved)

    assert in_a_child(save) == 0
    assert content(saved) == before
    assert names(saved) == ["state-00000001", "state-00000002"]
    next_one.save(saved)
    assert names(saved) == ["state-00000002", "state-00000003"]


# A few of the system calls, or each of them.
CALLS_BETWEEN = pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])


@CALLS_BETWEEN
def test_killed_at_any_system_call_of_a_save(saved, tmp_path, step):
    """Before it opens, renames, makes or removes a file or folder for the n-th time."""
    next_one, expected = at(3), {2: at(2), 3: at(3)}
    resumed = set()
    for call in range(1, 200, step):
        folder = tmp_path / f"killed-{call}"
        shutil.copytree(saved, folder)
        status = in_a_child(lambda: next_one.save(folder), kill_at=call)  # noqa: B023
        state = fresh()
        state.resume(folder)
        resumed.add(state.progress.update)
        assert equal(state, expected[state.progress.update])
        folders.recover_all(folder)
        next_one.save(folder)
        assert names(folder) == ["state-00000002", "state-00000003"]
        if status == 0:
            break
    assert call > 30
    assert resumed == {2, 3}


@CALLS_BETWEEN
def test_killed_at_any_system_call_of_a_replacement(tmp_path, step):
    """The folder is the old or the new one, whole, with the files that simllm did not write."""
    whole = ({"a": "old", "b": "old"}, {"b": "new", "c": "new"})

    def write(folder, number):
        with folders.replacing(folder) as partial:
            for name, text in whole[number].items():
                (partial / name).write_text(text)

    found = []
    for call in range(1, 200, step):
        folder = tmp_path / str(call) / "folder"
        write(folder, 0)
        (folder / "notes").write_text("mine")
        status = in_a_child(lambda: write(folder, 1), kill_at=call)  # noqa: B023
        folders.recover_all(folder.parent)
        after = {path.name: path.read_text() for path in folder.iterdir() if path.name != folders.MARKER}
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
    """Do the work in a copy of this process, which ends before its n-th system call of `CALLS`.

    Returns its exit status: 0 done, 9 killed, 1 for an exception.
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
