"""The text of the model card."""

import json

import pytest

from tests.conftest import ROOT
from train.release.card import describe_configuration, figure_sections

STAGE = {"out": "runs/one", "seed": 1, "pairs": {"size": 4}}


def test_first_configuration_of_its_kind_is_written_whole():
    other = {"out": "runs/other", "layers": 2}
    assert describe_configuration(STAGE, [other]) == (
        '`{"out": "runs/one", "seed": 1, "pairs": {"size": 4}}`'
    )


def test_later_configuration_is_written_as_the_difference_from_the_most_similar_stage():
    far = STAGE | {"seed": 9, "pairs": {"size": 99}}
    third = STAGE | {"out": "runs/three"}
    assert (
        describe_configuration(third, [{"layers": 2}, far, STAGE])
        == 'like stage 3, except `{"out": "runs/three"}`'
    )


@pytest.mark.parametrize(
    ("unseen", "source"),
    [(True, "Comments of repositories that are not trained on"), (False, "Held-out comments")],
)
def test_card_names_the_source_of_the_comments(unseen, source):
    figures = json.loads((ROOT / "checkpoints" / "default" / "figures.json").read_text())
    sections = figure_sections(figures | {"unseen": unseen})
    assert sections[sections.index("## Languages") + 1].startswith(
        f"{source}: how often a summary is nearest"
    )
