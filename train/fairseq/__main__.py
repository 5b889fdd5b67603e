"""For users of fairseq: our token shards as its dataset, its MPNet checkpoint as our model folder.

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
from simllm.io import folders
from simllm.model.tokenizer import Tokenizer
from train.fairseq import checkpoint, dataset, dictionary
from train.fairseq.tokenizer import from_sentencepiece
from train.runtime.command_line import exit_status


def main() -> int:
    """Run the command; returns its exit status."""
    options = _parser().parse_args()
    return exit_status(lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    if options.out.exists() or options.out.is_symlink():
        raise InputError(f"{options.out}: exists already")
    folders.check_place(options.out)
    try:
        options.run(options)
    except OSError as error:
        raise InputError(str(error)) from None


def _export(options: argparse.Namespace) -> None:
    dataset.export(options.run_folder, options.out)


def _import(options: argparse.Namespace) -> None:
    if options.tokenizer is not None:
        tokenizer = Tokenizer.load(options.tokenizer)
    elif options.sentencepiece is not None:
        tokenizer = from_sentencepiece(options.sentencepiece, dictionary.read(options.dict))
    else:
        raise InputError(
            f"{options.dict} does not say how a text is split into its symbols: give the --sentencepiece "
            "model that the training texts were split with, or a --tokenizer"
        )
    checkpoint.convert(options.checkpoint, options.dict, tokenizer, options.out, options.mismatch_as_unk)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m train.fairseq",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    export = commands.add_parser("export-data", help="a pretraining run's texts as train, valid and dict.txt")
    export.add_argument("run_folder", type=Path, help="the `out` of a pretraining run")
    export.add_argument("out", type=Path, help="folder to make")
    export.set_defaults(run=_export)

    import_ = commands.add_parser("import-checkpoint", help="an MPNet checkpoint as a model folder")
    import_.add_argument("checkpoint", type=Path, help="such as checkpoint_best.pt")
    import_.add_argument("dict", type=Path, help="the dict.txt it was trained with")
    import_.add_argument("out", type=Path, help="model folder to make")
    splitter = import_.add_mutually_exclusive_group()
    splitter.add_argument("--tokenizer", type=Path, metavar="FILE", help="a tokenizer.json of simllm")
    splitter.add_argument("--sentencepiece", type=Path, metavar="FILE", help="a SentencePiece BPE model")
    import_.add_argument(
        "--mismatch-as-unk",
        action="store_true",
        help="what only one of dict.txt and the tokenizer knows is <unk>; fairseq-preprocess leaves "
        "out of a dict.txt what its corpus lacks, and such tokens were <unk> to fairseq, too",
    )
    import_.set_defaults(run=_import)
    return parser


if __name__ == "__main__":
    sys.exit(main())
