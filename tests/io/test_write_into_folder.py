"""Writing of single files into a folder of simllm."""

import pytest

from simllm.errors import InputError
from simllm.io import write_into_folder


def test_own_marks_new_and_empty_folders_and_refuses_others(tmp_path):
    for name in ("new", "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        write_into_folder.own(tmp_path / name, "results")
        write_into_folder.own(tmp_path / name, "results")
        write_into_folder.add(tmp_path / name, "result", "1")
        write_into_folder.add(tmp_path / name, "result", "2")
        assert (tmp_path / name / "result").read_text() == "2"
    (tmp_path / "new" / "mine").write_text("keep me")
    with pytest.raises(InputError, match="mine: was not written by simllm"):
        write_into_folder.add(tmp_path / "new", "mine", "x")
    with pytest.raises(InputError, match="did not write"):
        write_into_folder.own(tmp_path, "results")
