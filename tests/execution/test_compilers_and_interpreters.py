"""Compilers and interpreters: missing ones are reported, and installed ones name their version."""

import pytest

from simllm.errors import InputError
from simllm.execution import toolchains
from simllm.execution.toolchains import find_toolchain, toolchain_version


def test_missing_tools(monkeypatch):
    monkeypatch.setattr(toolchains.shutil, "which", lambda name, path: None)
    with pytest.raises(
        InputError, match=r"java: no javac in /usr/bin.*: apt-get install default-jdk-headless"
    ):
        find_toolchain("java")
    with pytest.raises(InputError, match="language 'cobol': expected one of cpp, python, java"):
        find_toolchain("cobol")


def test_versions(sandbox):
    assert toolchain_version(sandbox, "cpp").startswith("g++ ")
    assert toolchain_version(sandbox, "python").startswith("Python 3.")
