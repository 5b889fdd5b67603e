"""Output files: checks, locks and atomic writing."""

import os
from pathlib import Path

import pytest

from simllm.errors import InputError
from simllm.io import output_file


def test_output_file_is_replaced_only_with_overwrite(tmp_path):
    file = tmp_path / "table.tsv"
    output_file.check_output(file, overwrite=False)
    file.touch()
    output_file.check_output(file, overwrite=False)
    file.write_text("mine")
    with pytest.raises(InputError, match=r"table\.tsv: exists already; --overwrite replaces it"):
        output_file.check_output(file, overwrite=False)
    output_file.check_output(file, overwrite=True)
    with pytest.raises(InputError, match="it is a folder"):
        output_file.check_output(tmp_path, overwrite=True)
    file.unlink()
    file.symlink_to("table.tsv")
    with pytest.raises(InputError, match="cannot be written"):
        output_file.check_output(file, overwrite=True)
    output_file.check_output(Path(os.devnull), overwrite=False)
    with pytest.raises(InputError, match="would overwrite what is read"):
        output_file.check_output(tmp_path / "a", overwrite=True, inputs=[tmp_path / "a"])
