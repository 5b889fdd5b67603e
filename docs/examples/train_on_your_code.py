"""Train a model on your own source code: corpus, pretraining, contrastive stage, scores.

    python docs/examples/train_on_your_code.py my/repositories --out runs/own      # about ten minutes
    python docs/examples/train_on_your_code.py --out runs/own --quick              # about a minute

Run it from the checkout. Without a source, the comments are those of the Python modules on this machine.
With the settings of this example the model is far too small to be useful: the page "Training your own" says
which settings to take for a real one. If the script is interrupted, rerun it to resume.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import sysconfig
from pathlib import Path

from simllm import SimLLM

# A few packages of the standard library, for --quick.
QUICK_SOURCES = ["asyncio", "email", "unittest", "logging", "multiprocessing", "importlib", "http", "urllib"]
QUICK_PRETRAINING = ["updates=20", "warmup_updates=2", "evaluate_every=10", "batch_tokens=2048"]
QUICK_PRETRAINING += ["test_texts=200", "model.vocab_size=1000", "model.hidden_size=64"]
QUICK_PRETRAINING += ["model.intermediate_size=256"]
QUICK_CONTRASTIVE = ["updates=4", "warmup_updates=1", "evaluate_every=4", "pairs=32"]


def run(module: str, *arguments: str) -> None:
    """Run a training command, and end this script if it fails."""
    print("+ python -m", module, *arguments, flush=True)
    status = subprocess.run([sys.executable, "-m", module, *arguments], check=False).returncode
    if status:
        sys.exit(status)


def main() -> None:
    """Train, and score two pairs with the new model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sources", nargs="*", help="folders of source trees or git repositories")
    parser.add_argument("--out", type=Path, default=Path("runs/own"), help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="a small corpus and few updates")
    options = parser.parse_args()

    sources = options.sources
    if options.quick and not sources:
        standard_library = Path(sysconfig.get_path("stdlib"))
        sources = [str(standard_library / package) for package in QUICK_SOURCES]
    corpus, first, second = (str(options.out / name) for name in ("corpus", "pretrained", "tuned"))

    run("train.corpus", "build", *(sources or ["--installed-python"]), "--out", corpus)
    run(
        "train.pretrain", "configs/debug.yaml", f"out={first}", f"corpus.sources=[{corpus}]",
        *(QUICK_PRETRAINING if options.quick else []),
    )  # fmt: skip

    # Positives: each comment and its rewording by rule, against changes of its meaning by rule.
    positives = f"{{source: {corpus}/train.txt, share: 1, fields: [], rewording: true, hard_negatives: 3}}"
    run(
        "train.contrastive", "configs/contrastive.yaml", f"model={first}/model", f"out={second}",
        f"positives=[{positives}]", "rated=[]", "overlap=null", "exclude=[]", "precision=fp32",
        "dev=[docs/examples/data/ratings.jsonl]", f"dev_comments={corpus}/test.txt",
        *(QUICK_CONTRASTIVE if options.quick else ["updates=200", "warmup_updates=20", "evaluate_every=50"]),
    )  # fmt: skip

    metric = SimLLM(f"{second}/model")
    for candidate, reference in (("opens a file", "open the file"), ("opens a file", "sends an e-mail")):
        print(f"{metric.score([candidate], [reference]).mean:.2f}  {candidate} / {reference}")
    print(f"The model is in {second}/model")


if __name__ == "__main__":
    main()
