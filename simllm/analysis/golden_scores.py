"""Golden scores: a model's scores of fixed text pairs, stored with the model.

If the same model later gives other scores, a change of the code or of a library is the cause.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from simllm.errors import InputError
from simllm.io.output_folder import OutputFolder
from simllm.io.reading import build, read_json
from simllm.metric import SimLLM

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


@dataclass(frozen=True)
class GoldenScores:
    """The expected scores of the text pairs in `PAIRS`, and the hash of the model that gives these scores."""

    model: str
    scores: tuple[float, ...]


def write_golden_scores(folder: Path) -> None:
    """Compute the golden scores of the model in a folder, and write them into the same folder."""
    # On the CPU in float32, which every machine has.
    metric = SimLLM(folder, mode="plain", device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the pairs have empty and long texts on purpose
        values = metric.score(*zip(*PAIRS, strict=True)).values
    golden = GoldenScores(metric.model.hash, tuple(round(value, 7) for value in values.tolist()))
    OutputFolder(folder).write(GOLDEN_FILE, json.dumps(asdict(golden), indent=2) + "\n")


def largest_difference(metric: SimLLM, folder: Path) -> float:
    """Return the largest absolute difference of a metric's scores from the golden scores in its folder."""
    if not (folder / GOLDEN_FILE).is_file():
        raise InputError(f"{folder}: no {GOLDEN_FILE}; expected a model folder with golden scores")
    golden = build(GoldenScores, read_json(folder / GOLDEN_FILE), str(folder / GOLDEN_FILE))
    if golden.model != metric.model.hash or len(golden.scores) != len(PAIRS):
        raise InputError(f"{folder / GOLDEN_FILE}: not of this model ({metric.model.hash}) or these pairs")
    values = metric.score(*zip(*PAIRS, strict=True)).values
    return float(np.abs(values - np.array(golden.scores)).max())
