"""Export token shards (token ids on disk) as a fairseq dataset, or import an MPNet checkpoint of fairseq.

    python -m train.fairseq export-data RUN_FOLDER OUT
    python -m train.fairseq import-checkpoint model.pt dict.txt OUT --tokenizer tokenizer.json
    python -m train.fairseq import-checkpoint model.pt dict.txt OUT --sentencepiece sp.model

fairseq itself is not needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io.output_folder import OutputFolder
from simllm.model.tokenizer import Tokenizer
from train.fairseq import dictionary
from train.fairseq.checkpoint import import_checkpoint
from train.fairseq.dataset import export_dataset
from train.fairseq.dictionary import from_sentencepiece
from train.runtime.command import make_parser, run_command


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.fairseq", __doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    export = commands.add_parser("export-data", help="write the texts of a pretraining run as a dataset")
    export.add_argument("run_folder", type=Path, help="the `out` of a pretraining run")
    export.add_argument("out", type=Path, help="folder to write")
    export.set_defaults(run=export_dataset)

    import_ = commands.add_parser("import-checkpoint", help="write an MPNet checkpoint as a model folder")
    import_.add_argument("checkpoint", type=Path, help="such as checkpoint_best.pt")
    import_.add_argument("dict", type=Path, help="the dict.txt of the training")
    import_.add_argument("out", type=Path, help="model folder to write")
    splitter = import_.add_mutually_exclusive_group()
    splitter.add_argument("--tokenizer", type=Path, metavar="FILE", help="a tokenizer.json of simllm")
    splitter.add_argument("--sentencepiece", type=Path, metavar="FILE", help="a SentencePiece BPE model")
    import_.add_argument(
        "--mismatch-as-unk",
        action="store_true",
        help="treat a token that is only in dict.txt or only in the tokenizer as <unk>; fairseq-preprocess "
        "leaves tokens that are not in its corpus out of dict.txt, and fairseq treats them as <unk>, too",
    )
    import_.set_defaults(run=_import)
    return run_command(parser, _run)


def _run(run: Callable[..., None], out: Path, **options: Any) -> None:
    """Run the command that the user chose, unless its output folder exists."""
    if out.exists() or out.is_symlink():
        raise InputError(f"{out}: exists already")
    OutputFolder(out).check_place()
    try:
        run(out=out, **options)
    except OSError as error:
        raise InputError(str(error)) from None


def _import(
    checkpoint: Path,
    dict: Path,
    out: Path,
    tokenizer: Path | None,
    sentencepiece: Path | None,
    mismatch_as_unk: bool,
) -> None:
    """Run `import-checkpoint`; either `--tokenizer` or `--sentencepiece` must be given."""
    if tokenizer is not None:
        loaded = Tokenizer.load(tokenizer)
    elif sentencepiece is not None:
        loaded = from_sentencepiece(sentencepiece, dictionary.read_dictionary(dict))
    else:
        raise InputError(
            f"{dict} does not define how texts are tokenized; expected --sentencepiece with the "
            "SentencePiece model of the training texts, or --tokenizer"
        )
    import_checkpoint(checkpoint, dict, loaded, out, mismatch_as_unk)


if __name__ == "__main__":
    sys.exit(main())
