"""Use of simllm with other libraries, such as TRL, pandas and scikit-learn."""

import pickle
import threading

import datasets
import numpy as np
import onnxruntime
import pandas
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from simllm import InputError, SimLLM
from simllm.analysis.reward import reward
from simllm.model.config import cosine
from simllm.model.torch_engine import pad
from simllm.scoring.code import CodePair, words
from tests.command import run

PAIRS = {"candidate": ["adds two", "gets it"], "reference": ["sums two", "removes it"]}


@pytest.fixture(scope="module")
def metric(model_folder):
    return SimLLM(model_folder)


def test_use_as_a_reward_function(metric):
    score = reward(metric)
    expected = metric.score(PAIRS["candidate"], PAIRS["reference"]).values.tolist()
    assert score(PAIRS["candidate"], reference=PAIRS["reference"], prompts=["x", "y"]) == expected
    messages = [[{"role": "assistant", "content": text}] for text in PAIRS["candidate"]]
    assert score(completions=messages, reference=PAIRS["reference"]) == expected
    with pytest.raises(InputError, match='expected a column "reference"; there are gold'):
        score(PAIRS["candidate"], gold=PAIRS["reference"])


def test_threads_share_one_reward_function(metric, comments):
    score, found = reward(metric), {}
    expected = score(comments[:80], reference=comments[80:160])

    def work(start):
        found[start] = score(comments[start : start + 10], reference=comments[80 + start : 90 + start])

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 80, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [value for start in sorted(found) for value in found[start]] == pytest.approx(expected, abs=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_trl_trains_with_the_reward_function(metric, model_folder, tmp_path):
    from trl import GRPOConfig, GRPOTrainer  # here, because each process of the tests imports all test files

    tokenizer = PreTrainedTokenizerFast.from_pretrained(model_folder)
    torch.manual_seed(0)
    policy = GPT2LMHeadModel(GPT2Config(vocab_size=1000, n_positions=64, n_embd=16, n_layer=1, n_head=2))
    columns = {"prompt": ["adds", "gets"] * 2, "reference": ["adds two", "gets it"] * 2}
    rows = datasets.Dataset.from_dict(columns)
    settings = GRPOConfig(
        str(tmp_path),
        max_steps=1,
        per_device_train_batch_size=2,
        num_generations=2,
        max_completion_length=8,
        logging_steps=1,
        use_cpu=True,
        bf16=False,
        report_to=[],
        save_strategy="no",
    )
    trainer = GRPOTrainer(policy, reward(metric), settings, rows, processing_class=tokenizer)
    trainer.train()
    assert any("rewards/simllm_reward/mean" in entry for entry in trainer.state.log_history)


def test_pandas(metric):
    frame = pandas.DataFrame(PAIRS, index=[7, 3])
    frame["score"] = metric.score(frame.candidate, frame.reference).values
    alone = metric.score(["gets it"], ["removes it"]).values[0]
    assert frame.score.loc[3] == pytest.approx(alone, abs=1e-6)
    table = metric.score(frame.candidate, frame.reference).to_pandas(frame.index)
    assert table.equals(frame.score)
    with pytest.raises(TypeError, match=r"candidates\[1\]: expected a text, got float"):
        metric.score(pandas.Series(["a", float("nan")], dtype=object), ["a", "b"])


def test_scikit_learn(metric, comments):
    labels = [len(text) > 60 for text in comments[:60]]
    pipeline = make_pipeline(FunctionTransformer(metric.embed), LogisticRegression(max_iter=1000))
    assert pipeline.fit(comments[:60], labels).score(comments[:60], labels) > 0.7
    again = pickle.loads(pickle.dumps(pipeline))
    assert (again.predict(comments[:60]) == pipeline.predict(comments[:60])).all()


def test_datasets_map_in_batches(metric):
    rows = datasets.Dataset.from_dict(PAIRS)
    scored = rows.map(
        lambda batch: {"score": metric.score(batch["candidate"], batch["reference"]).values},
        batched=True, batch_size=1, num_proc=None,
    )  # fmt: skip
    assert scored["score"][:] == pytest.approx(metric.score(**{k + "s": v for k, v in PAIRS.items()}).values)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_onnx_of_the_encoder_of_code_gives_the_same_cosines(tmp_path):
    done = run("export", "--code", "-o", tmp_path / "code.onnx")
    assert done.returncode == 0, done.stderr
    session, metric = onnxruntime.InferenceSession(tmp_path / "code.onnx"), SimLLM()
    code, summary = "int maxOf(int a, int b) { return a >= b ? a : b; }", "Returns the larger number."
    (ids,) = metric.tokenize([words(code, "java")]).inputs
    tokens, mask = pad([ids[0]])
    feed = {"input_ids": tokens.numpy(), "attention_mask": mask.long().numpy()}
    feed["summary_embedding"] = embedding = metric.embed([summary])
    own, cosines = session.run(["sentence_embedding", "cosine"], feed)
    expected = metric.code_reader.score([CodePair(code, summary, "java")]).cosines[0]
    assert cosines == pytest.approx(expected, abs=1e-5)
    assert cosine(own, metric.code_reader.model.map_summaries(embedding)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_onnx_gives_the_same_embeddings(metric, model_folder, comments, tmp_path):
    file = tmp_path / "model.onnx"
    done = run("export", "-o", file, "--model", model_folder)
    assert done.returncode == 0, done.stderr
    session = onnxruntime.InferenceSession(file)
    for texts in (comments[:1], [c for c in comments[:60] if len(c) < 200]):
        ids = metric.tokenize(texts)
        tokens, mask = pad([windows[0] for windows in ids.inputs])
        feed = {"input_ids": tokens.numpy(), "attention_mask": mask.long().numpy()}
        (found,) = session.run(["sentence_embedding"], feed)
        assert np.abs(found - metric.embed(texts)).max() < 1e-5
