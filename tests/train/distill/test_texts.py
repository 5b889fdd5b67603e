"""The texts of a distillation: reading, cleaning, exclusion and shuffling."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm import InputError
from simllm.evaluation.contrast import deciding_word_pairs
from simllm.io import output_file
from simllm.text_cleaning import clean
from train.distill.config import TextsConfig
from train.distill.texts import GROUPS, LINES, flatten, gather

NOTHING = frozenset()


def gathered(folder, *sources, exclude=(), held_out=NOTHING, seed=1):
    return gather(sources, exclude, held_out, seed, folder / f"texts-{len(list(folder.iterdir()))}")


def source(sources, **options):
    return TextsConfig(source=str(sources / "plain.txt"), **options)


def pairs(sources, **options):
    return TextsConfig(source=str(sources / "pairs.jsonl"), fields=("a", "b"), **options)


def test_every_text_is_kept_once_and_clean(sources, tmp_path):
    groups = gathered(tmp_path, source(sources), pairs(sources))
    texts = [text for group in groups for text in group]
    assert sorted(map(len, groups)) == [1] * 200 + [2] * 30
    assert all(clean(text) == text for text in texts)
    assert len(set(texts)) == len(texts)
    folder = tmp_path / "texts-0"
    assert (folder / LINES).read_text().splitlines() == texts


def test_texts_depend_only_on_the_seed(sources, tmp_path):
    chosen = source(sources, limit=50, variants=0.5)
    one, again = (gathered(tmp_path, chosen) for _ in range(2))
    other = gathered(tmp_path, chosen, seed=2)
    assert one == again != other
    hashes = {output_file.sha256_of(tmp_path / f"texts-{number}" / GROUPS) for number in range(3)}
    assert len(hashes) == 2


def test_stored_texts_are_not_made_again(sources, tmp_path):
    groups = gather([source(sources)], (), NOTHING, 1, tmp_path / "texts")
    again = gather([TextsConfig(source="gone.txt")], (), NOTHING, 1, tmp_path / "texts")
    assert again == groups


def test_limits_variants_and_long_texts(sources, tmp_path):
    groups = gathered(tmp_path, source(sources, limit=80, variants=1.0, max_words=8))
    assert len(groups) == 80
    assert max(len(group[0].split()) for group in groups) <= 8
    assert max(map(len, groups)) == 3  # a text, its rewording, and a change of its meaning
    assert sum(len(group) > 1 for group in groups) > 70
    assert all(len(set(group)) == len(group) for group in groups)
    assert {len(g) for g in gathered(tmp_path, source(sources, variants=0.0))} == {1}


def test_rows_are_chosen_by_their_values(sources, tmp_path):
    kept = gathered(tmp_path, pairs(sources, leave_out={"from": ("other",)}))
    assert len(kept) == 20
    assert kept == gathered(tmp_path, pairs(sources, only={"from": ("one",)}))
    with pytest.raises(InputError, match=r"pairs\.jsonl.*no text is left"):
        gathered(tmp_path, pairs(sources, only={"from": ("nobody",)}))


def test_sentences_become_groups_of_their_own(tmp_path):
    rows = [
        {"description": "Opens the file, e.g. for reading. It must exist.\n\nReturns a handle"},
        {"summary": "a row without a description"},
        {"description": "It must exist!"},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    described = {"source": str(tmp_path / "rows.jsonl"), "fields": ("description",)}
    groups = gathered(tmp_path, TextsConfig(**described, sentences=True, max_words=12))
    expected = [("it must exist .",), ("opens the file , e . g . for reading .",), ("returns a handle",)]
    assert sorted(groups) == expected
    assert len(gathered(tmp_path, TextsConfig(**described))) == 2
    with pytest.raises(InputError, match="sentences: expected one field"):
        TextsConfig(source="pairs.jsonl", fields=("a", "b"), sentences=True)


def test_excluded_texts_are_left_out(tmp_path):
    """Excluded texts are left out even where they arise as rewordings or meaning changes of other texts."""
    (tmp_path / "plain.txt").write_text("gets the name\nopens the file\nadds a value\n")
    first = gathered(tmp_path, TextsConfig(source=str(tmp_path / "plain.txt"), variants=1.0))
    variants = [text for group in first for text in group[1:]]
    rows = [{"reference": text, "candidate": "Opens  the file", "rating": 1} for text in variants]
    (tmp_path / "rated.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    kept = gathered(
        tmp_path,
        TextsConfig(source=str(tmp_path / "plain.txt"), variants=1.0),
        exclude=[str(tmp_path / "rated.jsonl")],
    )
    texts = {text for group in kept for text in group}
    assert "gets the name" in texts
    assert not texts & {*variants, "opens the file"}


def test_a_source_with_excluded_texts_only_is_an_error(tmp_path):
    (tmp_path / "plain.txt").write_text("gets the name\n")
    row = {"reference": "Gets the name.", "candidate": "opens", "rating": 1}
    (tmp_path / "rated.jsonl").write_text(json.dumps(row) + "\n")
    plain = TextsConfig(source=str(tmp_path / "plain.txt"))
    with pytest.raises(InputError, match="all texts are excluded"):
        gathered(tmp_path, plain, exclude=[str(tmp_path / "rated.jsonl")])


def test_group_of_repeated_texts_is_left_out(tmp_path):
    (tmp_path / "a.txt").write_text("gets it\nGets  it\nsets it\n")
    (tmp_path / "b.jsonl").write_text(
        '{"a": "gets it", "b": "sets it"}\n{"a": "gets it", "b": "adds it"}\n{"a": "", "b": "x"}\n'
    )
    plain = TextsConfig(source=str(tmp_path / "a.txt"))
    groups = gathered(tmp_path, plain, TextsConfig(source=str(tmp_path / "b.jsonl"), fields=("a", "b")))
    assert sorted(groups) == [("gets it",), ("gets it", "adds it"), ("sets it",)]


def test_held_out_words_are_not_used(tmp_path):
    (tmp_path / "plain.txt").write_text("".join(f"encrypts the {n} files\n" for n in ("old", "new", "last")))
    plain = TextsConfig(source=str(tmp_path / "plain.txt"), variants=1.0)
    held_out = frozenset(deciding_word_pairs())
    for seed in range(5):
        texts = {t for g in gathered(tmp_path, plain, held_out=held_out, seed=seed) for t in g}
        assert not any("decrypt" in text for text in texts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": "nothing-there.txt"}, "no such file"),
        ({"source": "{pairs}", "fields": ("a", "c")}, r"pairs\.jsonl'?: no text is left in the fields a, c"),
        ({"source": "{pairs}", "fields": ("a",), "max_words": 1}, "no text is left"),
    ],
)
def test_invalid_source_is_an_error(sources, tmp_path, options, message):
    options = options | {"source": options["source"].format(pairs=sources / "pairs.jsonl")}
    with pytest.raises(InputError, match=message):
        gathered(tmp_path, TextsConfig(**options))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [{"limit": 0}, {"variants": 1.1}, {"variants": -0.1}, {"max_words": 0}])
def test_a_wrong_number_is_refused(options):
    with pytest.raises(InputError, match="must be"):
        TextsConfig(source="a.txt", **options)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=20), st.integers(3, 30))
def test_groups_are_not_divided(sizes, limit):
    groups = [tuple(f"{number} {i}" for i in range(size)) for number, size in enumerate(sizes)]
    kept, flat = flatten(groups, limit)
    assert kept == groups[: len(kept)]
    assert flat == [text for group in kept for text in group]
    assert len(flat) <= limit
    assert len(kept) == len(groups) or len(flat) + len(groups[len(kept)]) > limit
    assert flatten(groups, None)[0] == groups


def test_a_limit_below_the_first_group_is_refused():
    with pytest.raises(InputError, match="max_texts 1: the first group has 2 texts"):
        flatten([("a", "b"), ("c",)], 1)
