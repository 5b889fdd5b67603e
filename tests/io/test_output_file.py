"""Output files: checks, locks and atomic writing."""

import os
import subprocess
import sys
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


def test_scores_need_no_locks_and_so_no_fcntl():
    code = "import sys; sys.modules |= dict.fromkeys(['fcntl', 'resource']); import simllm; simllm.SimLLM"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = (
        "import sys; sys.modules['fcntl'] = None; from pathlib import Path;"
        "from simllm.io.output_file import locked; locked(Path('a')).__enter__()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "InputError: a: cannot be locked, because this system has no fcntl" in done.stderr
