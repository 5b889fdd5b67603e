"""The statistics of the sizes of patches."""

import pytest

from simllm.repair.results import finished_by_item, patch_statistics
from tests.repair.made_attempts import attempt


def published(**sizes):
    return patch_statistics(finished_by_item([attempt("a", 1, False, **sizes)]))["RPSR published"]


def test_published_rpsr_without_a_fix_or_with_an_equal_one_is_unknown():
    assert published(patch=3) is None
    assert published(patch=0, fix=0) is None
    assert published(patch=3, fix=2) == pytest.approx(1.5)
