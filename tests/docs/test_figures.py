"""The figures of the documentation are those that were measured."""

import pytest

from simllm import SimLLM
from simllm.analysis.comparison import compare
from tests.conftest import ROOT
from tests.docs.figures import MODEL, bare_figures, failed_checks, measured, refreshed, shown, value_of
from tests.docs.markdown_blocks import DATA, PAGES
from train.release.card import write_card
from train.release.refresh import CARD, read_sources, read_text

# Pages about the included model. Other pages have figures of machines, and of other models.
_OF_THE_MODEL = ["README.md", "docs/index.md", "docs/getting-started.md", "docs/scoring.md"]
_OF_THE_MODEL += ["docs/comparing.md", "docs/evaluating.md", "docs/examples/index.md", "docs/model-folder.md"]
_OF_THE_MODEL += ["docs/training.md", "docs/browser.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_show_what_was_measured(page):
    text = page.read_text(encoding="utf-8")
    assert refreshed(text) == text, "run python -m tests.docs.update_outputs"
    assert not failed_checks(text)


@pytest.mark.parametrize("page", _OF_THE_MODEL)
def test_every_figure_of_the_model_names_its_source(page):
    assert not bare_figures((ROOT / page).read_text(encoding="utf-8"))


def test_card_is_made_from_the_files_of_the_folder():
    sources = read_sources(MODEL, read_text(ROOT / "checkpoints" / "notes.md"))
    assert (MODEL / CARD).read_text(encoding="utf-8") == write_card(sources), (
        "run python -m train.release.refresh checkpoints/default --notes checkpoints/notes.md --card-only"
    )


def test_figures_are_those_of_the_included_model():
    assert measured()["signature"] == SimLLM(MODEL).signature


def test_comparison_of_the_examples_is_as_the_page_says():
    def read(name):
        return (DATA / name).read_text().splitlines()

    systems = {name: read(f"{name}.txt") for name in ("neural", "retrieval", "template")}
    result = compare(SimLLM(MODEL), systems, [read("references.txt")])
    first, second, third = result.differences
    assert max(first.permutation_p, second.permutation_p) < 0.05
    assert min(first.low, second.low) > 0
    assert third.high < 0  # only just
    assert 0.02 < third.p < 0.06


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (".1<!--spearman/rated/haque2022/pairs-->", "210.0"),
        ("1 pairs", "1 pairs"),
        (".999<!--fixed-->", ".999"),
        ("99%<!--contrast/rouge-l/adversarial/all-->", "0%"),
        ("**1.0M<!--model/vocab_size-->**", "**0.0M"),
        ("9,999<!--model/vocab_size--> tokens", "16,000"),
        (".44<!--same: opens the file | opens the file-->", "1.00"),
        ("0.44<!--score: opens the file | opens the file-->", "1.00"),
    ],
)
def test_a_stale_figure_is_replaced_in_its_own_form(before, after):
    assert refreshed(before).startswith(after)


def test_small_shares_do_not_look_like_none():
    assert [shown(value, "0.0", "%") for value in (0.0, 0.0004, 0.5)] == ["0.0", "0.04", "50.0"]


def test_unknown_source_is_named():
    with pytest.raises(AssertionError, match="no figure spearman/none/rho"):
        value_of("spearman/none/rho")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a correlation of .849", True),
        ("right in 84% of them", True),
        ("4.0 times as many", True),
        ("13.3M parameters", True),
        ("990 pairs a second", True),
        ("a correlation of **.849<!--spearman/rated/haque2022/simllm/rho-->**", False),
        ("below .3, and 95% intervals", False),
        ("Python 3.11, in 2026, `--share .25`", False),
        ("```text\n0.4387\n```", False),
    ],
)
def test_figures_without_a_source_are_found(text, found):
    assert bool(bare_figures(text)) == found
