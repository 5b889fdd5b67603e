"""The options that most subcommands have, such as `-o`, and the protection of what a command reads."""

from __future__ import annotations

import argparse
import contextlib
import glob
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simllm.io import output_file, partial_file, real_path
from simllm.io.output_folder import OutputFolder

MODEL = ("FOLDER", "a model folder; default: the included one")
OUTPUT = ("FILE", "write to FILE, not to stdout")
_FILES, _FOLDERS = ("output", "report"), ("out", "web")  # the options that name what a command writes


def add_options(
    command: argparse.ArgumentParser,
    formats: tuple[str, ...],
    model: tuple[str, str] | None,
    output: tuple[str, str] | None,
) -> None:
    """Add the options that most subcommands have, such as `--model`, `--output` and `--quiet`.

    `formats` are the values of `--format`; empty without this option. `model` and `output` are the
    placeholder and the help of `--model` and `-o`; None without the option.
    """
    if model:
        command.add_argument("--model", metavar=model[0], help=model[1])
    if formats:
        default = "text on a terminal, tsv in a pipe or file" if "tsv" in formats else formats[0]
        command.add_argument("-f", "--format", choices=formats, help=f"default: {default}")
    if output:
        command.add_argument("-o", "--output", type=_output_file, metavar=output[0], help=output[1])
    # A folder has no --overwrite: only folders that simllm wrote are ever replaced.
    if output == OUTPUT:
        command.add_argument("--overwrite", action="store_true", help="replace the file of -o if it exists")
    command.add_argument("-q", "--quiet", action="store_true", help="no warnings, no progress bar")


def _output_file(name: str) -> Path | None:
    """Return the path that `-o` names; None for `-`, which is standard output."""
    if not name:
        raise argparse.ArgumentTypeError("expected a file name, not an empty text")
    return None if name == "-" else Path(name)


@contextlib.contextmanager
def guarded_outputs(options: argparse.Namespace) -> Iterator[None]:
    """Protect what a command reads and writes while the command runs.

    First, every path that an option names is compared with the outputs. Then the output files are locked.
    Commands that write folders lock the folders themselves.

    Raises:
        InputError: An output would replace something that the command reads, or another process is writing
            it.
    """
    given = vars(options)
    files = [path for name in _FILES if (path := given.get(name)) is not None]
    folders = [path for name in _FOLDERS if (path := given.get(name)) is not None]
    inputs = _named_paths(options) if files or folders else []
    for folder in folders:
        OutputFolder(folder).check()
        target = real_path.real(folder)
        # A folder inside a folder that is read replaces nothing; some commands refuse it all the same.
        inside = [path for path in inputs if output_file.is_above(target, real_path.real(path))]
        OutputFolder(folder).check_apart(inside)
    with contextlib.ExitStack() as locks:
        for file in {real_path.real(file): file for file in files}.values():  # no file is locked twice
            if _is_folder(file):
                continue  # a command that expects a file refuses the folder
            output_file.check_unread(file, inputs)
            target, mode = real_path.real(file), output_file.mode_of(file)
            # A partial file may lie in a folder that is read: an earlier run of the same command wrote it.
            no_folders = (path for path in inputs if not _is_folder(path))
            output_file.check_unread(partial_file.path_of(target), no_folders)
            if os.access(target.parent, os.W_OK) and (mode == 0 or stat.S_ISREG(mode)):
                # A lock of its own, because a command that resumes holds the usual one for its partial file.
                locks.enter_context(output_file.locked(target, ".output.lock"))
        yield


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(output_file.mode_of(path))


def _named_paths(options: argparse.Namespace) -> list[Path]:
    """Return the files and folders that options name for reading, the default model included."""
    found = list[Path]()
    # All options rather than a list of them: a new option that names a file is protected, too.
    for name, value in vars(options).items():
        if name in (*_FILES, *_FOLDERS, *options.text_arguments):
            continue
        paths = [path for one in (value if isinstance(value, list) else [value]) for path in _paths_in(one)]
        found += (path for path in paths if name not in options.walked or not _is_folder(path))
    # None means the included model; a command without --model has no such attribute.
    if getattr(options, "model", "") is None:
        from simllm.model.default_model import default_model

        found.append(default_model())
    return found


def _paths_in(value: Any) -> list[Path]:
    """Return the existing paths in the value of an option; a glob pattern gives those that it matches."""
    if not isinstance(value, str | Path):
        return []
    whole = str(value)
    # A path may stand in a list "A,NAME=PATH", which options such as --metrics take.
    words = [whole, *whole.split(",")]
    words += [word.partition("=")[2] for word in words]
    found = [Path(word) for word in words if word and output_file.mode_of(Path(word))]
    if isinstance(value, Path) and not found:
        found = [value, *map(Path, glob.glob(whole, recursive=True))]  # noqa: PTH207 (also absolute patterns)
    return found
