"""`simllm export`: write the model as ONNX, for other inference engines or for a browser."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from simllm.cli.shared_options import CommonOptions
from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.output_folder import OutputFolder

FORMATS: tuple[str, ...] = ()
EXAMPLES = """examples:
  simllm export -o model.onnx
  simllm export --code -o code.onnx
  simllm export --web playground
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm export`."""

    code: bool = False
    web: Path | None = None
    int8: bool = False
    model: str | None = None


def add_options(export: argparse.ArgumentParser) -> None:
    """Add the options of `simllm export` to its parser."""
    export.add_argument(
        "--code", action="store_true",
        help="the encoder of code, with its comparison to embeddings of summaries",
    )  # fmt: skip
    export.add_argument(
        "--web", type=Path, metavar="FOLDER",
        help="write the playground, a page with its model, for a web server",
    )  # fmt: skip
    export.add_argument(
        "--int8", action="store_true",
        help="with --web: round all weights to 8 bits; half the size, scores differ by up to 0.01",
    )  # fmt: skip


def run(options: Options) -> None:
    """Run `simllm export`: write the model to an ONNX file, or the playground to a folder."""
    if (options.output is None) == (options.web is None):
        raise InputError("expected either -o FILE, to write the ONNX model to, or --web FOLDER")
    if options.int8 and options.web is None:
        raise InputError("--int8 goes with --web")
    if options.code and options.web is not None:
        raise InputError("--code goes with -o FILE")
    if options.web is not None:
        # Late, because torch is slow to import.
        from simllm.analysis import playground
        from simllm.metric import SimLLM

        OutputFolder(options.web, playground.CONTENT).check_replaceable()
        playground.write_playground(SimLLM(options.model, long="whole"), options.web, options.int8)
        return
    assert options.output is not None  # or else there is --web
    output_file.check_output(options.output, options.overwrite)
    if options.output.exists() and not options.output.is_file():
        raise InputError(f"{options.output}: expected a file; an ONNX model cannot go to a pipe or a device")
    from simllm.model import code_model
    from simllm.model.export import export_code_onnx, export_onnx
    from simllm.model.saved_model import default_model, load

    model = load(options.model or default_model())
    if options.code:
        folder = code_model.packaged()
        code = code_model.load(folder, model) if folder else None
        if code is None:
            raise InputError("--code: no model that reads code belongs to this model")
        export_code_onnx(code, options.output)
    else:
        export_onnx(model, options.output)
