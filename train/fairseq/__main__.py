"""Export token shards (token ids on disk) as a fairseq dataset, or import an MPNet checkpoint of fairseq.

    python -m train.fairseq export-data RUN_FOLDER OUT
    python -m train.fairseq import-checkpoint model.pt dict.txt OUT --tokenizer tokenizer.json
    python -m train.fairseq import-checkpoint model.pt dict.txt OUT --sentencepiece sp.model

fairseq itself is not needed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from simllm.errors import InputError
from simllm.io.output_folder import OutputFolder
from simllm.model.tokenizer import Tokenizer
from train.fairseq import dictionary
from train.fairseq.checkpoint import import_checkpoint
from train.fairseq.dataset import export_dataset
from train.fairseq.dictionary import from_sentencepiece
from train.runtime.tools import run_tool


def main() -> int:
    """Run the command line, and return the exit status."""
    options = _parser().parse_args()
    return run_tool(lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    """Run the command that the user chose, unless its output folder exists."""
    if options.out.exists() or options.out.is_symlink():
        raise InputError(f"{options.out}: exists already")
    OutputFolder(options.out).check_place()
    try:
        options.run(options)
    except OSError as error:
        raise InputError(str(error)) from None


def _export(options: argparse.Namespace) -> None:
    export_dataset(options.run_folder, options.out)


def _import(options: argparse.Namespace) -> None:
    """Run `import-checkpoint`; either `--tokenizer` or `--sentencepiece` must be given."""
    if options.tokenizer is not None:
        tokenizer = Tokenizer.load(options.tokenizer)
    elif options.sentencepiece is not None:
        tokenizer = from_sentencepiece(options.sentencepiece, dictionary.read_dictionary(options.dict))
    else:
        raise InputError(
            f"{options.dict} does not define how texts are tokenized; expected --sentencepiece with the "
            "SentencePiece model of the training texts, or --tokenizer"
        )
    import_checkpoint(options.checkpoint, options.dict, tokenizer, options.out, options.mismatch_as_unk)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m train.fairseq",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    export = commands.add_parser("export-data", help="write the texts of a pretraining run as a dataset")
    export.add_argument("run_folder", type=Path, help="the `out` of a pretraining run")
    export.add_argument("out", type=Path, help="folder to write")
    export.set_defaults(run=_export)

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
    return parser


if __name__ == "__main__":
    sys.exit(main())
