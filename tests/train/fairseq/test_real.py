"""Round trip through fairseq: it trains on our dataset, and we import its checkpoint.

Needs SIMLLM_FAIRSEQ_PYTHON, a Python with fairseq 0.12.2 (such as Python 3.10 with torch 1.12).
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
import torch

from simllm.model import saved_model
from train.fairseq.checkpoint import import_checkpoint
from train.fairseq.dataset import export_dataset

PYTHON = os.environ.get("SIMLLM_FAIRSEQ_PYTHON")

# RoBERTa has the encoder of MPNet, but without relative positions, which fairseq lacks.
TRAINING = """--task masked_lm --criterion masked_lm --arch roberta_base --cpu --num-workers 0 --seed 1
    --encoder-layers 2 --encoder-embed-dim 32 --encoder-ffn-embed-dim 64 --encoder-attention-heads 4
    --sample-break-mode eos --tokens-per-sample 64 --batch-size 16 --optimizer adam --lr 0.001
    --max-update 5 --log-format none"""


def fairseq(*arguments):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [PYTHON, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not PYTHON, reason="SIMLLM_FAIRSEQ_PYTHON names no Python that has fairseq")
def test_fairseq_trains_on_the_export_and_its_checkpoint_is_imported(
    run_folder, tokenizer, comments, tmp_path
):
    data, answers = tmp_path / "data", tmp_path / "answers.json"
    export_dataset(run_folder, data)
    fairseq("-m", "fairseq_cli.train", data, *TRAINING.split(), "--save-dir", tmp_path / "saved")
    model = tmp_path / "saved" / "checkpoint_best.pt"
    fairseq(Path(__file__).with_name("answers.py"), data, model, answers)
    theirs = json.loads(answers.read_text())

    assert theirs["symbols"] == [tokenizer.backend.id_to_token(i) for i in range(1000)]
    expected = [tokenizer.truncate(ids, 64) for ids in tokenizer.encode(comments[:350])]
    assert [[0, *text] for text in theirs["train"] + theirs["valid"]] == expected

    import_checkpoint(model, data / "dict.txt", tokenizer, tmp_path / "out")
    encoder = saved_model.load(tmp_path / "out").encoder
    for text, features in zip(theirs["samples"], theirs["features"], strict=True):
        with torch.no_grad():
            hidden = encoder(torch.tensor([text]))[0]
        assert (hidden - torch.tensor(features)).abs().max() < 1e-5
