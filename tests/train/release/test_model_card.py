"""The text of the model card."""

from train.release.model_card import describe_configuration

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
        describe_configuration(third, [{"layers": 2}, far, STAGE]) == 'as 3, except `{"out": "runs/three"}`'
    )
