import numpy as np
import pytest

from simllm.evaluation.metric_study.results import correlate_groups
from simllm.evaluation.ratings import Ratings


def test_correlations_by_language_and_length_by_hand():
    """The texts have 1, 2 or 5 words. Scores correlate with ratings by +1 in Java, and by -1 in Go."""
    references = ["a"] * 40 + ["a b"] * 40 + ["a b c d e"] * 40
    languages = ["java", "go"] * 60
    values = np.random.default_rng(0).normal(size=120)
    scores = np.where(np.array(languages) == "java", values, -values)
    rated = Ratings(
        "set", references, references, values, groups={"language": languages, "system": ["x"] * 120}
    )
    found = correlate_groups(rated, {"m": scores})
    assert [(g.by, g.label, g.pairs) for g in found] == [
        ("language", "go", 60),
        ("language", "java", 60),
        ("length", "1 word", 40),
        ("length", "2 words", 40),
        ("length", "5 words", 40),
    ]
    assert [g.spearman["m"] for g in found[:2]] == pytest.approx([-1, 1])


@pytest.mark.slow
def test_many_group_labels_are_fast():
    """There are 50,000 labels; a search through all pairs for each label would take minutes."""
    n = 50_000
    values = np.random.default_rng(0).normal(size=n)
    labels = [f"{'x' * 200} {i}" for i in range(n)]
    rated = Ratings(
        "set", [f"{'a ' * (i % 300)}" for i in range(n)], labels, values, groups={"system": labels}
    )
    assert {group.by for group in correlate_groups(rated, {"m": values})} == {"length"}
