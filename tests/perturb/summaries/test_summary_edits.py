"""Rewordings and meaning changes of real and of random comments."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from simllm.perturb.summaries.meaning_changes import KINDS, change
from simllm.perturb.summaries.rewording import reword
from simllm.text_cleaning import clean
from tests.perturb.summaries.lexicon_without_test_pairs import LEXICON

_KNOWN = sorted({*LEXICON.synonyms, *LEXICON.opposites, *LEXICON.neighbours, *LEXICON.verb_forms})
_PHRASES = sorted({" ".join(sorted(template.words)) for template in LEXICON.templates})
_ODDS = "the a an no if not isn't can't 3 5 five . , ' \" * / # - ( ) non one".split()
TEXTS = st.one_of(
    st.text(),
    st.lists(st.sampled_from(_KNOWN) | st.sampled_from(_PHRASES) | st.sampled_from(_ODDS)).map(" ".join),
).map(clean)


@settings(max_examples=100)
@given(TEXTS, st.integers(0, 2**32))
def test_edits_of_any_text_are_clean(text, seed):
    reworded = reword(text, LEXICON, np.random.default_rng(seed))
    assert clean(reworded) == reworded
    assert bool(reworded) == bool(text)
    assert reworded == reword(text, LEXICON, np.random.default_rng(seed))
    changed = change(text, LEXICON, np.random.default_rng(seed))
    assert changed == change(text, LEXICON, np.random.default_rng(seed))
    if changed is not None:
        kind, other = changed
        assert kind in KINDS
        assert other
        assert other != text
        assert clean(other) == other


def test_nearly_every_comment_can_be_reworded_and_changed(comments):
    random = np.random.default_rng(0)
    texts = [text for text in map(clean, comments) if 3 < text.count(" ") < 20]
    assert np.mean([reword(text, LEXICON, random) != text for text in texts]) > 0.8
    changes = [change(text, LEXICON, random) for text in texts]
    assert np.mean([found is not None for found in changes]) > 0.95
    kinds = [found[0] for found in changes if found]
    assert all(kinds.count(kind) > 20 for kind in KINDS)
