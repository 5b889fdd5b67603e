import sys

import pytest

from simllm.errors import InputError
from simllm.perturb.code.proof import prove_by_command

COMMAND = f"{sys.executable} {{dir}}/check.py"


@pytest.fixture
def folders(tmp_path):
    """Return a function that writes two folders, `original` and `variant`, each with a script `check.py`."""

    def write(original, variant):
        for name, text in (("original", original), ("variant", variant)):
            (tmp_path / name).mkdir()
            (tmp_path / name / "check.py").write_text(text)
        return tmp_path / "original", tmp_path / "variant"

    return write


def test_tests_pass_on_both_sides(folders):
    proof = prove_by_command(COMMAND, *folders("", "print(1)"), case_id="all")
    assert (proof.id, proof.verdict, proof.reason) == ("all", "tests passed", "")


def test_failing_tests_refute_the_variant(folders):
    proof = prove_by_command(COMMAND, *folders("", "print('1 failed'); raise SystemExit(3)"))
    assert (proof.verdict, proof.reason) == ("refuted", "exit status 3: 1 failed")


def test_a_variant_that_does_not_end_is_refuted(folders):
    proof = prove_by_command(COMMAND, *folders("", "import time; time.sleep(60)"), timeout=2)
    assert (proof.verdict, proof.reason) == ("refuted", "it does not end within 2 s")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (COMMAND, "the command fails on the original code: exit status 1"),
        ("make test", "expected {dir}"),
        ("/no/such/program {dir}", "cannot run '/no/such/program': No such file or directory"),
        ("make '{dir}", "No closing quotation"),
    ],
)
def test_bad_commands_are_errors(folders, command, message):
    with pytest.raises(InputError, match=message.replace("{", r"\{")):
        prove_by_command(command, *folders("raise SystemExit(1)", ""))
