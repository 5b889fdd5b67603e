import os

import pytest

from simllm.errors import InputError
from simllm.execution import Sandbox


@pytest.fixture(scope="session")
def sandbox():
    """Yield a sandbox. If none can be made here, the test is skipped, or fails if REQUIRE_BWRAP=1 is set."""
    try:
        sandbox = Sandbox()
    except InputError as error:
        (pytest.fail if os.environ.get("REQUIRE_BWRAP") == "1" else pytest.skip)(str(error))
    with sandbox:
        yield sandbox
