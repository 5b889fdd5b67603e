import numpy as np

from simllm import SimLLM
from simllm.model import saved_model
from train.release.folder import centre_embeddings


def test_centring_changes_no_probability_of_the_same_meaning(head_folder, tmp_path, comments):
    model = saved_model.load(head_folder)
    centre_embeddings(model, comments[:50])
    saved_model.save(tmp_path / "centred", model.encoder, model.tokenizer, model.info, "", head=model.head)
    before, after = (SimLLM(folder) for folder in (head_folder, tmp_path / "centred"))
    embeddings = [metric.embed(comments[:50]).mean(axis=0) for metric in (before, after)]
    assert np.abs(embeddings[1]).max() < 1e-5 < np.abs(embeddings[0]).max()
    pairs = comments[:20], comments[20:40]
    assert np.abs(after.score(*pairs).same - before.score(*pairs).same).max() < 1e-5
