import numpy as np
import pytest
import torch

from simllm.text import clean
from train import shards
from train.batches import Batches, seed_of
from train.permute import predicted_count


@pytest.fixture(scope="module")
def shard(comments, tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    (folder / "texts.txt").write_text("".join(clean(text) + "\n" for text in comments))
    return shards.write(folder / "texts.txt", "corpus", tokenizer, 64, folder / "shard")


def originals(batch):
    """Undo the permutation: the token at each position, for every text."""
    predicted = batch.targets.shape[1]
    length = batch.tokens.shape[1] - 2 * predicted
    tokens = torch.empty_like(batch.tokens[:, :length])
    return tokens.scatter_(1, batch.positions[:, :length], batch.tokens[:, :length])


def test_a_shard_holds_the_tokenized_texts(shard, comments, tokenizer):
    lengths = shard.lengths
    assert len(lengths) == len(comments)
    assert lengths.max() == 64
    assert shard.truncated == sum(len(ids) > 64 for ids in tokenizer.encode(comments))
    index = int(np.flatnonzero(lengths < 64)[7])
    assert shard.texts(np.array([index]), lengths[index]).tolist() == tokenizer.encode([comments[index]])
    ends = shard.ids[shard.starts[1:] - 1]
    assert (ends == 2).all()


def test_every_text_comes_exactly_once_an_epoch_in_another_order(shard):
    batches = Batches(shard, 1000, 0.15, 1024, seed=3)
    epochs = []
    for epoch in range(2):
        seen = [
            tuple(text)
            for index in range(epoch * len(batches), (epoch + 1) * len(batches))
            for text in originals(batches[index]).tolist()
        ]
        epochs.append(seen)
    long_enough = np.flatnonzero([predicted_count(n, 0.15) > 0 for n in shard.lengths])
    expected = sorted(tuple(shard.texts(np.array([i]), shard.lengths[i])[0]) for i in long_enough)
    assert sorted(epochs[0]) == sorted(epochs[1]) == expected
    assert epochs[0] != epochs[1]
    assert batches.tokens == sum(map(len, expected))


def test_a_batch_is_a_function_of_seed_and_index(shard):
    for index in (0, 5, 1000):
        one, two = (Batches(shard, 1000, 0.15, 1024, seed=3)[index] for _ in range(2))
        assert torch.equal(one.tokens, two.tokens)
        assert torch.equal(one.positions, two.positions)
    other = Batches(shard, 1000, 0.15, 1024, seed=4)[5]
    assert other.tokens.shape != one.tokens.shape or not torch.equal(other.tokens, one.tokens)


def test_batches_keep_to_their_budget_and_share_of_predicted_tokens(shard):
    batches = Batches(shard, 1000, 0.15, 1024, seed=3)
    for index in range(len(batches)):
        batch = batches[index]
        length = batch.tokens.shape[1] - 2 * batch.targets.shape[1]
        assert batch.tokens.shape[0] * length <= 1024
        assert batch.targets.shape[1] == predicted_count(length, 0.15) > 0
        assert batch.visible.shape == (1, batch.tokens.shape[1], length + batch.targets.shape[1])


def test_the_fixed_texts_are_always_the_same(shard):
    one, two = (list(Batches(shard, 1000, 0.15, 1024, seed=3).fixed(200)) for _ in range(2))
    assert 150 < sum(len(batch.tokens) for batch in one) <= 200
    for a, b in zip(one, two, strict=True):
        assert torch.equal(a.tokens, b.tokens)
        assert torch.equal(a.positions, b.positions)


def test_seeds_do_not_collide():
    assert len({seed_of(a, b) for a in range(100) for b in range(100)}) == 10_000
