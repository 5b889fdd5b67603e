"""The runner of commands: which line it prints for an error, and which exit status it returns."""

from types import SimpleNamespace

import pytest

from simllm import InputError
from train.runtime.command import make_parser, run_command
from train.runtime.signals import Stopped


def command(work, **options):
    """Return a module with a command that has the option `--count`, and works by calling `work`."""

    def main():
        parser = make_parser("train.x", "What the command does.")
        parser.add_argument("--count", type=int, default=1)
        return run_command(parser, work, **options)

    return SimpleNamespace(__name__="train.x", main=main)


def failing(error):
    def work(count):
        raise error

    return command(work)


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (InputError("a.txt: no such file"), 2, "error: a.txt: no such file\n"),
        (Stopped("stopped; rerun it", 75), 75, "stopped; rerun it\n"),
        (Stopped("", 1), 1, ""),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (
            ModuleNotFoundError("No module named 'yaml'", name="yaml"),
            2,
            "error: yaml is not installed; in a checkout of simllm, run pip install '.[train,code,eval]'\n",
        ),
    ],
)  # fmt: skip
def test_an_expected_error_is_one_line_and_a_status(call, error, status, line):
    done = call(failing(error))
    assert (done.returncode, done.stdout, done.stderr) == (status, "", line)


@pytest.mark.parametrize("error", [ValueError("a bug"), ModuleNotFoundError("gone", name="train.gone")])
def test_an_unexpected_error_is_raised(call, error):
    with pytest.raises(type(error), match=str(error)):
        call(failing(error))


def test_work_gets_the_options_by_name(call):
    got = []
    assert call(command(lambda count: got.append(count)), "--count", "3").returncode == 0
    replacing = command(lambda count, overwrite: got.append(overwrite), overwrite=True)
    assert call(replacing, "--overwrite").returncode == 0
    assert got == [3, True]
