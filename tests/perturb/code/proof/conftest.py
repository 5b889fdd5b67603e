import shutil

import pytest

from tests.execution.conftest import sandbox

__all__ = ["sandbox"]


@pytest.fixture(scope="session")
def javac():
    """Skip the test if no Java compiler is installed."""
    if shutil.which("javac") is None:
        pytest.skip("no javac: apt-get install default-jdk-headless")
