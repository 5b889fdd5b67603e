import itertools

import numpy as np
import pytest

from simllm.errors import InputError
from simllm.model.ppmi_vectors import ppmi_matrix
from train.tokens import vocabulary
from train.tokens.shards import Shards


def shards(*texts, parts=1):
    """Return tokenized texts (arrays of token ids) in the form of training shards: in `parts` long arrays."""
    edges = np.linspace(0, len(texts), parts + 1).astype(int)
    ids = [np.concatenate(texts[a:b]).astype(np.uint16) for a, b in itertools.pairwise(edges)]
    return Shards(ids, np.array(list(map(len, texts)), np.int64))


def counts(*texts, size=8, parts=1):
    return vocabulary._count_neighbours(shards(*map(np.array, texts), parts=parts), size).toarray()


def test_neighbours_are_within_five_tokens_and_one_text():
    text = [0, 1, 2, 3, 4, 5, 6]
    expected = np.zeros((8, 8))
    for a in text:
        for b in text:
            expected[a, b] = 0 < abs(a - b) <= 5
    assert (counts(text) == expected).all()
    assert (counts([0, 1], [2, 3]) == counts([0, 1]) + counts([2, 3])).all()
    assert counts([0, 1], [2, 3])[1, 2] == 0


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_counts_do_not_depend_on_the_shards(parts):
    texts = [[0, 1, 2], [3], [4, 4, 1], [2, 0], [5, 6, 1, 2, 3, 4, 5, 0, 1], [6, 6]]
    assert (counts(*texts, parts=parts) == sum(counts(text) for text in texts)).all()


def test_ppmi_by_hand():
    """The PPMI of the texts `0 1`, `0 1` and `0 2` equals the values below, which were computed by hand.

    There are six ordered pairs of neighbours: (0, 1) twice, (0, 2) once, and the same pairs reversed. The
    shares p of the tokens 0, 1 and 2 are 1/2, 1/3 and 1/6. The smoothed shares s are proportional to
    p^.75: s = .459458, .338982 and .201560. In each line below, PPMI is log p(a, b) minus the mean of
    log(p(a) s(a)) and log(p(b) s(b)).

    (0, 1): log(2/6) - (log(1/2 * .459458) + log(1/3 * .338982)) / 2 = .727025
    (0, 2): log(1/6) - (log(1/2 * .459458) + log(1/6 * .201560)) / 2 = .640382
    """
    found = ppmi_matrix(
        vocabulary._count_neighbours(shards(np.array([0, 1]), np.array([0, 1]), np.array([0, 2])), 4)
    ).toarray()
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 0.727025
    expected[0, 2] = expected[2, 0] = 0.640382
    assert found == pytest.approx(expected, abs=1e-5)


def test_ppmi_of_chance_neighbours_is_zero():
    """Each of the two tokens is as often beside itself as beside the other token."""
    found = ppmi_matrix(
        vocabulary._count_neighbours(shards(*(np.array([a, b]) for a in (0, 1) for b in (0, 1))), 2)
    )
    assert found.toarray() == pytest.approx(np.zeros((2, 2)), abs=1e-12)


@pytest.fixture(scope="module")
def topics():
    """Return texts of two topics, with tokens 5-14 and 15-24; tokens 25-29 are in no text."""
    random = np.random.default_rng(0)
    return shards(*(random.integers(low, low + 10, size=12) for low in (5, 15) for _ in range(200)), parts=2)


def test_words_of_one_topic_get_similar_vectors(topics):
    vectors = vocabulary.compute_vectors(topics, 30, 2)
    assert vectors.shape == (30, 2)
    assert vectors.dtype == np.float32
    assert vectors.std() == pytest.approx(1, abs=1e-5)
    assert not vectors[:5].any()
    assert not vectors[25:].any()
    unit = vectors[5:25] / np.linalg.norm(vectors[5:25], axis=1, keepdims=True)
    cosines = unit @ unit.T
    assert cosines[:10, :10].min() > 0.9
    assert cosines[10:, 10:].min() > 0.9
    assert np.abs(cosines[:10, 10:]).max() < 0.3


def test_vectors_are_deterministic_and_computed_once(topics, tmp_path, monkeypatch):
    vectors = vocabulary.load_or_compute_vectors(tmp_path / "vectors", topics, 30, 4)
    assert (vectors == vocabulary.compute_vectors(topics, 30, 4)).all()
    monkeypatch.setattr(vocabulary, "compute_vectors", None)
    assert (vocabulary.load_or_compute_vectors(tmp_path / "vectors", topics, 30, 4) == vectors).all()
    assert sorted(tmp_path.iterdir()) == [tmp_path / "vectors"]


@pytest.mark.parametrize("name", ["vectors.npy", "sha256"])
def test_damaged_vectors_are_computed_again(topics, tmp_path, capsys, name):
    expected = vocabulary.load_or_compute_vectors(tmp_path / "vectors", topics, 30, 4)
    file = tmp_path / "vectors" / name
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    assert (vocabulary.load_or_compute_vectors(tmp_path / "vectors", topics, 30, 4) == expected).all()
    assert "vectors.npy: damaged (checksum differs); computed again" in capsys.readouterr().err
    assert file.read_bytes() == whole


def test_unreadable_vectors_are_an_error(topics, tmp_path):
    vocabulary.load_or_compute_vectors(tmp_path / "vectors", topics, 30, 4)
    (tmp_path / "vectors" / "sha256").unlink()
    (tmp_path / "vectors" / "sha256").mkdir()
    with pytest.raises(InputError, match="sha256: cannot be read"):
        vocabulary.load_or_compute_vectors(tmp_path / "vectors", topics, 30, 4)
