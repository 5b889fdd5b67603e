"""Changes of meaning that must not be made."""

import numpy as np
import pytest

from simllm.perturb.summaries.meaning_changes import change
from tests.perturb.summaries.lexicon_without_test_pairs import LEXICON


@pytest.mark.parametrize(
    ("text", "never"),
    [
        ("needs to open a copy", "needs from open a copy"),  # an infinitive's `to`
        ("used to check the value", "used to voucher the value"),  # a verb, not a noun
        ("set the module", "got the module"),
        ("a value between min and max", "a value between min and min"),
        ("enable all the profiles", "enable no the profiles"),
        ("the dialogs are shown", "the dialogs is shown"),
    ],
)
def test_impossible_changes_of_meaning(text, never):
    found = {change(text, LEXICON, np.random.default_rng(seed)) for seed in range(100)}
    assert len(found) > 1
    assert never not in {changed for _, changed in found - {None}}
