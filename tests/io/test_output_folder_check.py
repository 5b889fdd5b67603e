"""Checks of an output folder."""

import pytest

from simllm.errors import InputError
from simllm.io import output_folder_check


def test_output_must_not_overlap_its_sources(tmp_path):
    (tmp_path / "source" / "inner").mkdir(parents=True)
    for output in ("source", "source/out", ".", "source/inner/.."):
        with pytest.raises(InputError, match="name another folder"):
            output_folder_check.check_apart(tmp_path / output, [tmp_path / "source"])
    output_folder_check.check_apart(tmp_path / "other", [tmp_path / "source"])
    output_folder_check.check_apart(tmp_path / "source-2", [tmp_path / "source"])
