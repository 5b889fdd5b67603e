"""`simllm frequencies`: count the texts that contain each token, or find the frequent n-grams in code.

The learned metric uses the counts to give frequent tokens less weight. CrystalBLEU, a metric for code,
ignores the frequent n-grams.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from simllm.cli.shared_options import CommonOptions
from simllm.errors import InputError
from simllm.io import output_file, packages, reading

FORMATS: tuple[str, ...] = ()  # the table is always JSON
WALKED = ("references",)
EXAMPLES = """examples:
  simllm frequencies references.txt -o frequencies.json
  simllm score -c c.txt -r r.txt --similarity f1 --frequencies frequencies.json
  simllm frequencies --ngrams 500 --language java my/code -o shared.json
  simllm score --jsonl fixes.jsonl --metrics crystalbleu=shared.json
"""
_LARGEST = 1_000_000  # bytes; larger files are generated code or data


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm frequencies`."""

    references: Path
    ngrams: int | None = None
    language: str | None = None
    model: str | None = None


def add_options(frequencies: argparse.ArgumentParser) -> None:
    """Add the arguments of `simllm frequencies` to its parser."""
    frequencies.add_argument(
        "references", type=Path, metavar="FILE",
        help="references, one per line; with --ngrams: a file or folder of code",
    )  # fmt: skip
    frequencies.add_argument(
        "--ngrams", type=int, metavar="K", help="find the K most frequent n-grams of tokens in code"
    )
    frequencies.add_argument("--language", metavar="NAME", help="with --ngrams: the language of the code")


def run(options: Options) -> None:
    """Run `simllm frequencies`: write counts of tokens or n-grams as JSON."""
    if options.output is None:
        raise InputError("expected -o FILE, to write the table to")
    if (options.ngrams is None) != (options.language is None):
        raise InputError("--ngrams K and --language NAME go together")
    if options.ngrams is not None and options.language is not None:
        if options.model is not None:
            raise InputError("--model goes with references, not with --ngrams")
        _write_ngrams(options.references, options.ngrams, options.language, options.output, options.overwrite)
        return
    output_file.check_output(options.output, options.overwrite)
    from simllm.metric import SimLLM

    metric = SimLLM(options.model)
    table = metric.count_frequencies(line for _, line in reading.read_lines(options.references))
    if not table.documents:
        raise InputError(f"{options.references}: empty; expected one text per line")
    table.save(options.output)


def _write_ngrams(place: Path, k: int, language: str, output: Path, overwrite: bool) -> None:
    """Write the k most frequent n-grams of tokens in a file or folder of code, for the metric CrystalBLEU."""
    with packages.require_code_extra():
        from simllm.code.languages.language import LANGUAGE_OF_SUFFIX, find_language
        from simllm.metrics.code import bleu
    find_language(language)
    if k < 1:
        raise InputError(f"--ngrams {k}: expected 1 or more")
    suffixes = {suffix for suffix, name in LANGUAGE_OF_SUFFIX.items() if name == language}
    # A file is read whatever its suffix: the user named it.
    found = sorted(_code_files(place, suffixes)) if place.is_dir() else [place]
    if not found:
        raise InputError(f"{place}: no files of {language} ({', '.join(sorted(suffixes))})")
    output_file.check_output(output, overwrite, found)
    shared = bleu.count_shared(_texts(found), language, k)
    if not shared:
        raise InputError(f"{place}: no code")
    bleu.save_shared(output, {language: shared})


def _code_files(folder: Path, suffixes: set[str]) -> Iterator[Path]:
    """Yield the files in a folder whose suffix is in `suffixes`; skip hidden folders."""
    for here, inner, names in os.walk(folder):
        # os.walk does not enter a folder that is removed from its own list.
        inner[:] = [name for name in inner if not name.startswith(".")]
        found = (Path(here, name) for name in names if Path(name).suffix in suffixes)
        yield from (file for file in found if file.is_file())  # a pipe or a device may have no end


def _texts(found: list[Path]) -> Iterator[str]:
    """Yield the text of each code file; skip large files with a warning."""
    for file in found:
        try:
            if file.stat().st_size > _LARGEST:
                warnings.warn(f"{file}: larger than {_LARGEST:,} bytes; left out", stacklevel=2)
                continue
            yield file.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror})") from None
