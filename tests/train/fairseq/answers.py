"""Script that reads our dataset and checkpoint with fairseq; test_real.py runs it with another Python.

python answers.py DATA CHECKPOINT OUT
"""

import json
import sys

import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset

data, checkpoint, out = sys.argv[1:]
texts = {}
for split in ("train", "valid"):
    dataset = MMapIndexedDataset(f"{data}/{split}")
    texts[split] = [dataset[i].tolist() for i in range(len(dataset))]
(model,), _, _ = checkpoint_utils.load_model_ensemble_and_task([checkpoint])
samples = [[0, *text] for text in texts["valid"]]
with torch.no_grad():
    features = [model.eval()(torch.tensor([text]), features_only=True)[0][0].tolist() for text in samples]
symbols = Dictionary.load(f"{data}/dict.txt").symbols
with open(out, "w") as file:  # noqa: PTH123
    json.dump({"symbols": symbols, **texts, "samples": samples, "features": features}, file)
