import os
import shutil

import pytest

from tests.slurm.cluster import DAEMONS, running
from tests.train.conftest import few_comments  # noqa: F401


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """Start a cluster of two nodes. Without SLURM the tests are skipped, or fail if REQUIRE_SLURM=1."""
    absent = [daemon for daemon in DAEMONS if shutil.which(daemon) is None]
    obstacle = "SLURM's daemons need root" if os.getuid() else ""
    if absent:
        obstacle = f"not installed: {', '.join(absent)} (apt-get install slurm-wlm munge)"
    if obstacle:
        (pytest.fail if os.environ.get("REQUIRE_SLURM") == "1" else pytest.skip)(obstacle)
    with running(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster
