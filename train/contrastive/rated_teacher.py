"""Fine-tune a larger encoder on people's ratings, so that it is a better teacher of similarity.

    python -m train.contrastive.rated_teacher teachers/all-mpnet-base-v2 runs/rated-teacher \
        --rated data/sts/stsb_en/train.jsonl --exclude data/sts/stsb_en/{dev,test}.jsonl \
        data/sts/sick/test_annotated.jsonl data/sts/semeval_sts/sts2012.jsonl runs/held-out.jsonl

The loss is the squared difference between the cosine of two embeddings and the rating, scaled to 0 to 1
(Reimers and Gurevych, "Sentence-BERT", 2019). One pass over the STS benchmark is enough for all-MiniLM-L6-v2:
more made it no better.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import torch

from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.output_folder import OutputFolder
from train.contrastive.grades import GradedSourceConfig, GradesConfig, read_graded_pairs
from train.contrastive.meaning_pairs import MeaningPair
from train.distill.teachers import identity, load_sentence_transformer
from train.runtime.command import make_parser, run_command
from train.runtime.config import shorten_paths
from train.runtime.log import print_progress

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.contrastive.rated_teacher", __doc__)
    parser.add_argument("teacher", type=Path, help="folder of sentence-transformers or transformers")
    parser.add_argument("out", type=Path, help="folder to write, in the format of sentence-transformers")
    parser.add_argument("--rated", required=True, help="JSON lines with the texts a and b and a score")
    parser.add_argument(
        "--scale", type=float, nargs=2, default=(0.0, 5.0), help="lowest and highest score; default: 0 5"
    )
    parser.add_argument("--exclude", nargs="*", default=[], help="rated files whose texts are left out")
    parser.add_argument("--epochs", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    return run_command(parser, _write)


def _write(
    teacher: Path,
    out: Path,
    rated: str,
    scale: list[float],
    exclude: list[str],
    epochs: int,
    seed: int,
) -> None:
    if epochs < 1 or seed < 0:
        raise InputError(f"expected --epochs from 1 and --seed from 0, not {epochs} and {seed}")
    folder = OutputFolder(out, "a teacher")
    folder.check()
    folder.check_apart([teacher])
    source = GradedSourceConfig(source=rated, scale=(scale[0], scale[1]))
    pairs = read_graded_pairs(GradesConfig(sources=(source,), exclude=tuple(exclude)))
    print_progress(f"{len(pairs):,} pairs")
    files = shorten_paths({"rated": rated, "exclude": exclude})
    facts = {"start": identity(teacher), "pairs": len(pairs), "epochs": epochs, "seed": seed, **files}
    with folder.replacing() as partial:
        model = load_sentence_transformer(teacher, torch.device("cpu"))
        _train(model, pairs, epochs, seed)
        model.save_pretrained(str(partial), create_model_card=False)
        output_file.write(partial / "training.json", json.dumps(facts, indent=1) + "\n")


def _train(model: SentenceTransformer, pairs: Sequence[MeaningPair], epochs: int, seed: int) -> None:
    """Train in place on pairs whose labels are ratings from 0 to 1."""
    # Not installed on bare GPU images.
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

    columns = {
        "first": [pair.first for pair in pairs],
        "second": [pair.second for pair in pairs],
        "label": [pair.label for pair in pairs],
    }
    with TemporaryDirectory() as unused:
        arguments = SentenceTransformerTrainingArguments(
            unused,
            num_train_epochs=epochs,
            per_device_train_batch_size=32,
            learning_rate=4e-5,
            warmup_steps=0.1,  # a share of all
            weight_decay=0.01,
            seed=seed,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            use_cpu=not torch.cuda.is_available(),
        )
        data = Dataset.from_dict(columns)
        trainer = SentenceTransformerTrainer(model, arguments, data, loss=CosineSimilarityLoss(model))
        with redirect_stdout(sys.stderr):  # it prints figures
            trainer.train()


if __name__ == "__main__":
    sys.exit(main())
