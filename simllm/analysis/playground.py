"""Export of a model as a playground: a folder with a static web page that scores texts in the browser."""

from __future__ import annotations

import json
import lzma
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from simllm.analysis.explanation import SMALLEST_GAIN
from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.output_folder import OutputFolder
from simllm.io.packages import find_packaged
from simllm.metric import SimLLM
from simllm.model.export import write_browser_model
from simllm.scoring.scores import DOUBTFUL, SIMILAR
from simllm.text_cleaning import LONGEST

MODEL, SETTINGS = "model", "settings.json"
CONTENT = "a playground"  # of the folder, for its marker
_RUNTIME = "vendor/ort-wasm-simd-threaded.wasm"  # ONNX Runtime Web


def write_playground(metric: SimLLM, folder: Path, int8: bool = False) -> None:
    """Write the playground into a folder, which a web server can then serve.

    The metric must have mean pooling, cosine, and `long="whole"`. See `write_model` for `int8`. An existing
    folder is replaced if simllm wrote it.
    """
    with OutputFolder(folder, CONTENT).replacing() as partial:
        shutil.copytree(
            _page_folder(),
            partial,
            ignore=shutil.ignore_patterns("*.xz"),
            copy_function=shutil.copyfile,
            dirs_exist_ok=True,
        )
        write_model(metric, partial, int8)


def write_model(metric: SimLLM, folder: Path, int8: bool = False) -> None:
    """Write what the page downloads: the runtime, and in `model` the weights, tokenizer and settings.

    With `int8`, all large weight arrays are stored as int8. Otherwise they are stored as float16, except that
    arrays whose values are already rounded to 8 bits are stored as int8.
    """
    if (metric.pooling, metric.similarity) != ("mean", "cosine"):
        raise InputError("the playground needs a model with mean pooling and cosine")
    if metric.long != "whole":
        raise InputError("the playground compares texts as a whole; use a metric with long='whole'")
    # The repository and the wheel hold the runtime compressed: 2 MB, not 12.
    with lzma.open(_page_folder() / f"{_RUNTIME}.xz") as runtime:
        output_file.write(folder / _RUNTIME, runtime.read())
    (folder / MODEL).mkdir(exist_ok=True)
    is_rounded = write_browser_model(metric.model, folder / MODEL, int8)
    written = sorted((folder / MODEL).iterdir())
    meaning, calibration = metric.meaning, metric.calibration
    settings: dict[str, Any] = {
        "signature": metric.signature,
        "rounded": is_rounded,
        "files": {
            str(file.relative_to(folder)): file.stat().st_size for file in (folder / _RUNTIME, *written)
        },
        "max_length": metric.model.config.max_length,
        "max_characters": LONGEST,
        "unicode": _unicode_classes(),
        "random": calibration.random if calibration else None,
        "meaning": meaning
        and {"slope": meaning.slope, "intercept": meaning.intercept, "penalty": meaning.penalty},
        "similar": SIMILAR,
        "doubtful": DOUBTFUL,
        "gain": SMALLEST_GAIN,
    }
    output_file.write(folder / MODEL / SETTINGS, json.dumps(settings))


def _page_folder() -> Path:
    """Find the folder of the playground's HTML page, in the installed package or in the source checkout."""
    return find_packaged("playground_page", "docs/playground", "page of the playground")


def _unicode_classes() -> dict[str, str]:
    """List the characters that NFKD (a Unicode normalization) changes, and the accents that are removed.

    Both lists are ranges, to be put between the brackets `[...]` of a JavaScript regular expression.
    """
    # The page must clean texts exactly like the package `tokenizers`. A browser with a newer version of
    # Unicode decomposes some characters that `tokenizers` leaves unchanged. These characters are in neither
    # list, so that the page can recognize them. It replaces them by U+FFFD, which is never decomposed.
    from tokenizers import normalizers

    characters = [chr(code) for code in [*range(0x80, 0xD800), *range(0xE000, 0x110000)]]  # no surrogates
    lines = "\n".join(characters)
    decomposed = normalizers.NFKD().normalize_str(lines).split("\n")
    stripped = normalizers.StripAccents().normalize_str(lines).split("\n")
    return {
        "decomposed": _ranges(one for one, new in zip(characters, decomposed, strict=True) if new != one),
        "marks": _ranges(one for one, new in zip(characters, stripped, strict=True) if not new),
    }


def _ranges(characters: Iterable[str]) -> str:
    r"""Format characters in increasing order as ranges for JavaScript, such as `\u{300}-\u{36f}`."""
    ranges: list[list[int]] = []
    for code in map(ord, characters):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"\\u{{{first:x}}}-\\u{{{last:x}}}" for first, last in ranges)
