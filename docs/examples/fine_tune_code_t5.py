"""Fine-tune a CodeT5-like model to repay technical debt, and write its edits for `simllm evaluate edits`.

    simllm mine satd my/repositories -o items.jsonl
    python docs/examples/fine_tune_code_t5.py items.jsonl --model Salesforce/codet5p-220m --out runs/t5
    simllm evaluate edits runs/t5/edits.jsonl --out report

The program trains on the items of the split `train`, chooses the epoch with the lowest loss on `validation`,
and edits the items of `test`. All items of a repository are in one split, so that no test item comes from a
repository that the model has seen. `--model` is any encoder-decoder of transformers: a folder, or a name on
the hub. A GPU is used if there is one. If the program is interrupted, rerun it to resume.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
)
from transformers.trainer_utils import get_last_checkpoint

SPLITS = ("train", "validation", "test")


def read_splits(file: Path) -> DatasetDict:
    """Read mined items as a `datasets` dictionary with a data set for each split."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    splits = {name: [row for row in rows if row["split"] == name] for name in SPLITS}
    for name, found in splits.items():
        if not found:
            raise SystemExit(f"{file}: no item in the split {name}; mine more repositories")
    fields = ("id", "language", "comment", "source", "reference")
    return DatasetDict(
        {
            name: Dataset.from_list([{field: row[field] for field in fields} for row in found])
            for name, found in splits.items()
        }
    )


def tokenize(rows: dict[str, list[str]], tokenizer: Any, longest: int) -> dict[str, Any]:
    """Turn sources into inputs and references into labels; the comment is part of the source."""
    return tokenizer(  # type: ignore[no-any-return]
        rows["source"], text_target=rows["reference"], max_length=longest, truncation=True
    )


def edit(model: Any, tokenizer: Any, sources: list[str], options: argparse.Namespace) -> Iterable[str]:
    """Yield the model's most probable edit of each source, by beam search."""
    for start in range(0, len(sources), options.batch):
        inputs = tokenizer(
            sources[start : start + options.batch], max_length=options.longest, truncation=True, padding=True,
            return_tensors="pt",
        ).to(model.device)  # fmt: skip
        inputs.pop("token_type_ids", None)
        found = model.generate(**inputs, max_new_tokens=options.longest, num_beams=options.beams)
        yield from tokenizer.batch_decode(found, skip_special_tokens=True)


def main() -> None:
    """Train, and write an edit for each test item."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("items", type=Path, help="items of `simllm mine satd`")
    parser.add_argument("--model", required=True, help="a folder, or a name on the hub")
    parser.add_argument("--out", type=Path, default=Path("runs/t5"), help="default: %(default)s")
    parser.add_argument("--epochs", type=float, default=10, help="default: %(default)s")
    parser.add_argument("--batch", type=int, default=8, help="default: %(default)s")
    parser.add_argument(
        "--longest", type=int, default=1024, help="tokens; the rest is cut; default: %(default)s"
    )
    parser.add_argument("--rate", type=float, default=5e-5, help="learning rate; default: %(default)s")
    parser.add_argument("--beams", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    options = parser.parse_args()

    tokenizer = AutoTokenizer.from_pretrained(options.model)
    model = AutoModelForSeq2SeqLM.from_pretrained(options.model)
    splits = read_splits(options.items)
    tokens = splits.map(
        tokenize, batched=True, remove_columns=splits["train"].column_names,
        fn_kwargs={"tokenizer": tokenizer, "longest": options.longest},
    )  # fmt: skip
    training = options.out / "training"
    trainer = Seq2SeqTrainer(
        model=model,
        args=Seq2SeqTrainingArguments(
            output_dir=str(training), seed=options.seed, num_train_epochs=options.epochs,
            learning_rate=options.rate, weight_decay=0.01,
            per_device_train_batch_size=options.batch, per_device_eval_batch_size=options.batch,
            eval_strategy="epoch", save_strategy="epoch", save_total_limit=2, logging_strategy="epoch",
            load_best_model_at_end=True, metric_for_best_model="loss", greater_is_better=False,
            report_to="none",
        ),
        train_dataset=tokens["train"],
        eval_dataset=tokens["validation"],
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        processing_class=tokenizer,
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(training)) if training.is_dir() else None)
    trainer.save_model(str(options.out / "model"))

    model.eval()
    edits = edit(model, tokenizer, splits["test"]["source"], options)
    rows = [{**row, "candidate": text} for row, text in zip(splits["test"], edits, strict=True)]
    file = options.out / "edits.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(rows):,} edits are in {file}; next: simllm evaluate edits {file} --out report")


if __name__ == "__main__":
    main()
