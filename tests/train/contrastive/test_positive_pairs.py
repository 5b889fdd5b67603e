"""Sources of positive pairs for the contrastive stage."""

import json

import numpy as np

from simllm.perturb.summaries import lexicon
from train.contrastive.batches import PositiveSource
from train.contrastive.config import PositivesConfig
from train.corpus.decontaminate import ExcludedTexts


def test_pairs_with_an_excluded_text_are_left_out_also_for_a_hard_negative(tmp_path):
    file = tmp_path / "pairs.jsonl"
    rows = [{"a": f"opens {i}", "b": f"{i} is opened", "c": f"closes {i}"} for i in range(5)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = PositivesConfig(source=str(file), share=1.0, fields=["a", "b", "c"])
    excluded = ExcludedTexts(["opens 0", "1 is opened", "closes 2"])
    source = PositiveSource(config, excluded, lexicon.load())
    assert [pair.first for pair in source.pairs] == ["opens 3", "opens 4"]
    assert source.pairs[0].negatives == ("closes 3",)


def test_excluded_texts_are_found_in_lines_that_are_not_clean(tmp_path):
    file = tmp_path / "lines.txt"
    file.write_text("Opens the Big Red File now.\nCloses the Door of this room.\n")
    config = PositivesConfig(source=str(file), share=1.0, fields=[])
    source = PositiveSource(config, ExcludedTexts(["opens the big red file now"]), lexicon.load())
    random = np.random.default_rng(0)
    assert {source.draw(random).first for _ in range(20)} == {"closes the door of this room ."}
