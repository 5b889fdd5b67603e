"""Golden scores: a model's scores of fixed text pairs, or of code and summary, stored with the model.

If the same model later gives other scores, a change of the code or of a library is the cause.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.io.output_folder import OutputFolder
from simllm.io.reading import build, read_json
from simllm.metric import SimLLM
from simllm.scoring.code import CodePair, CodeReader

GOLDEN_FILE = "golden.json"

# Pairs that test cleaning, word order, length, spelling, empty texts and unusual characters.
PAIRS = [
    ("adds two lists", "combines 2 arrays"),
    ("returns the name of the user", "gets the user's name"),
    ("returns the name of the user", "sets the name of the user"),
    ("opens the file for reading", "closes the file after reading"),
    ("checks whether the list is empty", "checks whether the list is not empty"),
    ("converts a string to an integer", "parses an int from text"),
    ("sorts the entries in ascending order", "sorts the entries in descending order"),
    ("/** Gets the user's  NAME (1 . 5 times). */", "gets the user's name ( 1.5 times ) ."),
    ("connects to the database", "renders the login page"),
    ("x", "y"),
    ("", "removes it"),
    ("", ""),
    ("caf\u00e9 \u2014 na\u00efve \u201cquotes\u201d", 'cafe - naive "quotes"'),
    ("\U0001f389 done \u0000\u0007", "done"),
    ("read the buffer " * 60, "reads the buffer again and again"),
]


# Pairs that test the words of code in all languages, several clauses, empty code and long code.
CODE_PAIRS = [
    CodePair("int maxOf(int a, int b) { return a >= b ? a : b; }  // the maximum", text, "java")
    for text in ("Returns the larger of two numbers.", "Returns the smaller of two numbers.", "")
] + [
    CodePair(
        'def read(path):\n    """Doc."""\n    with open(path) as file:\n        return file.readlines()',
        "Reads the lines of a file. Then it renders the login page.",
        "python",
    ),
    CodePair("/* only a comment */", "Opens the file.", "java"),
    CodePair("func (s *Stack) Pop() int { n := s.items[0]; return n }", "removes the newest item", "go"),
    CodePair(
        "function isEmpty(list) { return !list.length; }", "Checks whether a list is empty", "javascript"
    ),
    CodePair("def gr\u00f6\u00dfe; @liste.size # \u00e4\nend", "Counts the entries.", "ruby"),
    CodePair("#[Pure] function f($a) { return $a * 2; }", "Doubles the number", "php"),
    CodePair("template <class T> T add(T a, T b) { return a + b; }", "Connects to the database", "cpp"),
    CodePair("function wait(ms: number) { total += ms; }\n" * 60, "Adds up the waiting times.", "typescript"),
    CodePair("sub total { return $_[0] + $_[1]; }", "Adds two numbers", None),
]


@dataclass(frozen=True)
class GoldenScores:
    """The expected scores of `PAIRS` or `CODE_PAIRS`, and the hash of the model that gives these scores.

    Each of `CODE_PAIRS` has two numbers: the score and `fits`.
    """

    model: str
    scores: tuple[float, ...]


def _score_pairs(metric: SimLLM) -> tuple[str, Floats]:
    """Return the hash of the model and its scores of `PAIRS`."""
    return metric.model.hash, metric.score(*zip(*PAIRS, strict=True)).values


def _score_code(reader: CodeReader) -> tuple[str, Floats]:
    """Return the hash of the model that reads code, and its scores and `fits` of `CODE_PAIRS`."""
    scores = reader.score(CODE_PAIRS)
    assert scores.fits is not None  # it has a model of its own
    return reader.signature, np.stack([scores.values, scores.fits], axis=1).ravel()


def write_golden_scores(folder: Path, reader: CodeReader | None = None) -> None:
    """Compute the golden scores of the model in a folder, and write them into the same folder.

    `reader` has the model if the folder is that of a model that reads code; its engine has mode `plain`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the pairs have empty and long texts on purpose
        if reader is None:
            # On the CPU in float32, which every machine has.
            model, values = _score_pairs(SimLLM(folder, mode="plain", device="cpu"))
        else:
            model, values = _score_code(reader)
    golden = GoldenScores(model, tuple(round(value, 7) for value in values.tolist()))
    OutputFolder(folder).write(GOLDEN_FILE, json.dumps(asdict(golden), indent=2) + "\n")


def largest_difference(scorer: SimLLM | CodeReader, folder: Path) -> float:
    """Return the largest absolute difference of scores from the golden scores in the model's folder."""
    file = folder / GOLDEN_FILE
    if not file.is_file():
        raise InputError(f"{folder}: no {GOLDEN_FILE}; expected a model folder with golden scores")
    golden = build(GoldenScores, read_json(file), str(file))
    model, values = _score_code(scorer) if isinstance(scorer, CodeReader) else _score_pairs(scorer)
    if golden.model != model or len(golden.scores) != len(values):
        raise InputError(f"{file}: not of this model ({model}) or these pairs")
    return float(np.abs(values - np.array(golden.scores)).max())
