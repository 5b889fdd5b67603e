"""`simllm export`: write the model as an ONNX file, for other inference engines."""

from __future__ import annotations

import argparse

from simllm.errors import InputError
from simllm.io import files

FORMATS: tuple[str, ...] = ()
HELP = "write the model as ONNX"
EXAMPLES = """example:
  simllm export -o model.onnx
"""


def run(options: argparse.Namespace) -> None:
    """Run `simllm export` with the parsed options: write the model to an ONNX file."""
    if options.output is None:
        raise InputError("expected -o FILE, to write the ONNX model to")
    files.check_output(options.output, [], options.overwrite)
    if options.output.exists() and not options.output.is_file():
        raise InputError(f"{options.output}: expected a file; an ONNX model cannot go to a pipe or a device")
    from simllm.model.checkpoint import default_model, load
    from simllm.model.onnx_export import export_onnx

    export_onnx(load(options.model or default_model()), options.output)
