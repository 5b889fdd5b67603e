import shutil

import pytest

from tests.execution.conftest import sandbox

__all__ = ["sandbox"]


@pytest.fixture(scope="session")
def javac():
    """Skip the test where there is no Java compiler."""
    if shutil.which("javac") is None:
        pytest.skip("no javac: apt-get install default-jdk-headless")
