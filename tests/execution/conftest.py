import os

import pytest

from simllm.errors import InputError
from simllm.execution import Sandbox


@pytest.fixture(scope="session")
def sandbox():
    """Yield a sandbox. Where programs are not contained, tests are skipped, or fail if REQUIRE_BWRAP=1."""
    try:
        sandbox = Sandbox()
    except InputError as error:
        (pytest.fail if os.environ.get("REQUIRE_BWRAP") == "1" else pytest.skip)(str(error))
    with sandbox:
        yield sandbox
