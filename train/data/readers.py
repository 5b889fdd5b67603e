"""Readers of the formats of public data sets: one function for each format, from files to rows."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import PurePosixPath
from statistics import fmean
from typing import Any
from xml.etree import ElementTree

from simllm.errors import InputError
from simllm.io.packages import missing_package

Row = dict[str, Any]  # an object of a JSON-lines file


@dataclass(frozen=True)
class SourceFile:
    """A file of a repository, with its content; `path` is in the repository."""

    path: PurePosixPath
    data: bytes

    @property
    def text(self) -> str:
        """The content as text; bytes that are not UTF-8 become U+FFFD."""
        return self.data.decode("utf-8", "replace").removeprefix("\ufeff")

    def lines(self) -> list[str]:
        r"""Split the text into lines, without the `\n` or `\r\n` at their ends."""
        # Not splitlines: that would also split at characters such as U+2028, inside of texts.
        lines = self.text.split("\n")
        if not lines[-1]:
            del lines[-1]
        return [line.removesuffix("\r") for line in lines]

    def columns(self) -> Iterator[list[str]]:
        """Yield a list of columns for each line; tabs separate the columns, and quotation marks are kept."""
        return (line.split("\t") for line in self.lines())

    def json(self) -> Any:
        """Parse the content as JSON."""
        return json.loads(self.text)

    def csv(self) -> Iterator[list[str]]:
        """Parse the content as comma-separated values, and yield its rows."""
        return csv.reader(io.StringIO(self.text, newline=""))


def antonyms(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield word pairs with opposite meanings, with the label "opposite"."""
    return _word_pairs(files, "opposite")


def synonyms(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield word pairs with the same meaning, with the label "same"."""
    return _word_pairs(files, "same")


def _word_pairs(files: Iterable[SourceFile], label: str) -> Iterator[Row]:
    """Yield a row with `a`, `b` and `label` for each line with two words."""
    for file in files:
        for line in file.lines():
            words = line.split()
            if len(words) == 2:
                yield {"a": words[0], "b": words[1], "label": label}


def abbreviations(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield rows such as `{"word": "message", "abbr": "msg", "degree": ...}`.

    `degree` says how much the data set recommends the abbreviation, as in "recommended".
    """
    for file in files:
        for item in file.json():
            for short in item["abbrs"]:
                yield {"word": item["word"], "abbr": short["abbr"], "degree": short["degree"]}


_LONGEST = 400  # characters of a docstring; the rest is cut
_MARKUP = re.compile("DCNL|DCSP|DCTB")  # for a line feed, a space, a tab
# The beginning of the sections after the description in a docstring.
_REST = re.compile(":param|:type|:return|@param|Args:|Parameters|Returns:|>>>")


def lines(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield each line of the files."""
    for file in files:
        for line in file.lines():
            yield {"text": line}


def lines_with_id(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the texts of TL-CodeSum; a line is an id, a tab and the text."""
    for file in files:
        for line in file.lines():
            yield {"text": line.partition("\t")[2]}


def titles(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the titles of questions on Stack Overflow in CodeNN, the third column."""
    for file in files:
        for columns in file.columns():
            yield {"text": columns[2]}


def comment_files(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the comments of FunCom, one for each file: the text after "COM:", without `<s>` and `</s>`."""
    for file in files:
        _, _, comment = file.text.partition("COM:")
        yield {"text": comment.replace("<s>", "").replace("</s>", "")}


def docstrings(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the descriptions of code-docstring-corpus; a line is one quoted docstring."""
    for file in files:
        for line in file.lines():
            text = _MARKUP.sub(" ", line).strip("'\" ")
            yield {"text": _REST.split(text, maxsplit=1)[0][:_LONGEST]}


def conala(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the questions of CoNaLa and their versions rewritten by people, with the kind as `source`."""
    for file in files:
        for item in file.json():
            for name in ("intent", "rewritten_intent"):
                if item[name] is not None:
                    yield {"source": f"conala/{name}", "text": item[name]}


def cosqa(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the search queries and the docstrings of CoSQA, with the kind as `source`."""
    for file in files:
        for item in file.json():
            yield {"source": "cosqa/query", "text": item["doc"]}
            yield {"source": "cosqa/docstring", "text": item["docstring_tokens"]}


def numbered_lists(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the texts of JSON files such as `{"1": ["text", ...], "2": [...]}`."""
    for file in files:
        for texts in file.json().values():
            for text in texts:
                yield {"text": text}


def texts_of_workbook(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield each distinct text in the cells of an Excel workbook (.xlsx)."""
    for file in files:
        with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
            strings = ElementTree.fromstring(archive.read("xl/sharedStrings.xml"))
        for string in strings:
            yield {"text": "".join(string.itertext())}


_MOST = 5  # descriptions of one command that are paired with each other
_LONGEST_OF_PAIRS = 120  # characters of a command in the name of its group


def headlines(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the headlines of at least four words of "A Million News Headlines", the second column."""
    for file in files:
        # The last line of the copy is cut.
        for line in file.lines()[1:-1]:
            _, _, headline = line.partition(",")
            if headline.strip().count(" ") >= 3:
                yield {"text": headline.strip()}


# Tokens of WikiSplit are separated by spaces.
_DETACHED = [
    (r"''", '"'),
    (r"\s+([,.;:!?)\]'%])", r"\1"),
    (r"([(\[])\s+", r"\1"),
    (r'"\s*([^"]*?)\s*"', r'"\1"'),
]


def split_sentences(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the sentences of WikiSplit, and the two simpler ones of each, of 5 to 50 words."""
    for file in files:
        for whole, parts in file.columns():
            for text in (whole, *parts.split("<::::>")):
                for pattern, joined in _DETACHED:
                    text = re.sub(pattern, joined, text)
                text = " ".join(text.split())
                if 4 <= text.count(" ") < 50:
                    yield {"text": text}


def treebank_sentences(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the sentences of 4 to 50 words of a CoNLL-U treebank."""
    for file in files:
        for line in file.lines():
            if line.startswith("# text = ") and 3 <= line[9:].count(" ") < 50:
                yield {"text": line[9:]}


def descriptions_by_id(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield all pairs of texts that describe the same code in CodeNN: lines with the same id, a tab and the
    text.
    """
    for file in files:
        groups: dict[str, list[str]] = {}
        for identifier, text in file.columns():
            groups.setdefault(identifier, []).append(text.strip())
        language = file.path.parts[-3]
        for identifier, texts in groups.items():
            for a, b in combinations(texts, 2):
                yield {"group": f"codenn-{language}-{identifier}", "a": a, "b": b}


def descriptions_by_command(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield pairs of descriptions of the same shell command in nl2bash.

    Line i of the first file describes the command in line i of the second file.
    """
    descriptions, commands = (file.lines() for file in files)
    groups: dict[str, dict[str, None]] = {}
    for text, command in zip(descriptions, commands, strict=True):
        groups.setdefault(command.strip(), {}).setdefault(text.strip())
    for command, texts in groups.items():
        for a, b in combinations(list(texts)[:_MOST], 2):
            yield {"group": f"nl2bash-{command[:_LONGEST_OF_PAIRS]}", "a": a, "b": b}


def rewritten_intents(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield pairs of a question and its version reworded by people, from CoNaLa."""
    for file in files:
        for item in file.json():
            a, b = item["intent"].strip(), (item["rewritten_intent"] or "").strip()
            if b and a != b:
                yield {"group": f"conala-{item['question_id']}", "a": a, "b": b}


def generated_summaries(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield references and generated summaries from the repository CodeSumEvaluation.

    `test.pred` has the generated summaries of a model, and `test.gold` in the same folder, or in the closest
    one above that has it, the references.
    """
    files = list(files)
    golds = {file.path.parent: file.lines() for file in files if file.path.name == "test.gold"}
    for file in files:
        if file.path.name == "test.pred":
            gold = next(golds[folder] for folder in file.path.parents if folder in golds)
            dataset, model = file.path.parts[2:4]
            for reference, candidate in zip(gold, file.lines(), strict=True):
                yield {"dataset": dataset, "model": model, "reference": reference, "candidate": candidate}


def commit_messages(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield human and generated commit messages from the repository CommitMsgEmpirical, without ratings."""
    for file in files:
        for row in csv.DictReader(io.StringIO(file.text, newline="")):
            yield {"reference": row["Reference"], "candidate": row["Generation"]}


def labelled_pairs(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the pairs of lines with two texts and a label, separated by tabs, below a header."""
    for file in files:
        for a, b, label in islice(file.columns(), 1, None):
            yield {"a": a, "b": b, "label": label}


def paws(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the pairs of PAWS, with the label "same" or "different"."""
    labels = {"0": "different", "1": "same"}
    for file in files:
        for columns in file.columns():
            if len(columns) == 4 and columns[3] in labels:
                # The tokenizer of the data set has turned quotation marks into backticks and apostrophes.
                a, b = (text.replace("``", '"').replace("''", '"') for text in columns[1:3])
                yield {"a": a, "b": b, "label": labels[columns[3]]}


def breaking_nli(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield a fixed selection of about three quarters of the pairs in Breaking NLI."""
    for file in files:
        with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
            content = archive.read("data/dataset.jsonl").decode("utf-8")
        for item in map(json.loads, content.splitlines()):
            a = item["sentence1"]
            # A hash of the first text decides, so that its pairs are yielded or left out together.
            if int(hashlib.md5(a.encode(), usedforsecurity=False).hexdigest(), 16) % 4:
                label = item["gold_label"]
                yield {"a": a, "b": item["sentence2"], "label": label, "kind": item["category"]}


def parallel_files(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the pairs of three files, of which line i has the first text, the second text, and the label."""
    for a, b, label in zip(*(file.lines() for file in files), strict=True):
        yield {"a": a, "b": b, "label": label}


def negations(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield a sentence and its negation, separated by a tab below a header, with the label "different"."""
    for file in files:
        for a, b in islice(file.columns(), 1, None):
            yield {"a": a, "b": b, "label": "different"}


# Columns of Haque et al. that do not contain metrics.
_HAQUE = {"", "Unnamed: 0", "function_id", "user_id", "accurate", "adequate", "concise", "similarity"}
_HAQUE |= {"source", "text", "text.1", "function", "bleu_cat"}
_ASPECTS = ("accurate", "adequate", "concise")
_SHEN_METRICS = ("bleu4", "bleu42", "rouge", "cider", "ciderd")


def haque(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the pairs of Haque et al. (2022) with their ratings and the metrics that the authors studied.

    Three of a pair's six raters rate how accurate, adequate and concise the reference is, the other three the
    generated summary. All six rate how similar both are.
    """
    for file in files:
        groups: dict[str, list[dict[str, str]]] = {}
        for row in csv.DictReader(io.StringIO(file.text, newline="")):
            groups.setdefault(row["function_id"], []).append(row)
        for identifier, rows in groups.items():
            sides = {
                "candidate": [row for row in rows if row["source"] == "baseline"],
                "reference": [row for row in rows if row["source"] == "reference"],
            }
            first = sides["reference"][0]
            ratings = [int(row["similarity"]) for row in rows]
            yield {
                "id": int(identifier),
                "language": "java",
                "reference": first["text"],
                "candidate": first["text.1"],
                "candidate_clean": " ".join(first["text.1"].replace("<UNK>", "").split()),
                "rating": fmean(ratings),
                "ratings": ratings,
                "raters": [int(row["user_id"]) for row in rows],
                **{
                    f"{aspect}_{side}": [int(row[aspect]) for row in rated]
                    for side, rated in sides.items()
                    for aspect in _ASPECTS
                },
                "metrics": {
                    name: float(value) if value else None
                    for name, value in first.items()
                    if name not in _HAQUE
                },
            }


def shen(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the pairs of Shen et al. (2021), from an Excel sheet, with one rating each and some metrics."""
    try:
        import xlrd
    except ImportError:
        raise InputError(f"shen2021_leclair: {missing_package('xlrd', 'train')}") from None
    for file in files:
        sheet = xlrd.open_workbook(file_contents=file.data, logfile=io.StringIO()).sheet_by_index(0)
        header, *rows = (sheet.row_values(number) for number in range(sheet.nrows))
        rows = [dict(zip(header, row, strict=True)) for row in rows]
        # The header is repeated in the middle.
        rows = [row for row in rows if row["human"] != "human"]
        for number, row in enumerate(rows):
            yield {
                "id": number,
                "language": "java",
                "reference": row["ref"],
                "candidate": row["can"],
                "rating": float(row["human"]),
                "ratings": [int(row["human"])],
                "fid": str(int(row["id"])),
                "code": row["code"],
                "metrics": {name: float(row[name]) for name in _SHEN_METRICS},
            }


def conala_grades(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the generated Python snippets of Evtikhiev et al. (2023), with the grades that people gave."""
    for file in files:
        for number, item in enumerate(file.json()):
            systems = [key.removeprefix("grade-") for key in item if key.startswith("grade-")]
            for system in systems:
                # The reference has grades, too.
                if system == "snippet":
                    continue
                yield {
                    "id": f"{number}/{system}",
                    "reference": item["snippet"][0],
                    "candidate": item[system],
                    "language": "python",
                    "system": system,
                    "ratings": item[f"grade-{system}"],
                }


def stsb(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the pairs of STS-B."""
    for file in files:
        for a, b, score in file.csv():
            yield {"a": a, "b": b, "score": float(score)}


def sick(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the pairs of SICK; `nli` says whether `a` implies `b`, contradicts it, or neither."""
    for file in files:
        rows = file.columns()
        next(rows)  # the header
        for _, a, b, score, judgement in rows:
            yield {"a": a, "b": b, "score": float(score), "nli": judgement}


def semeval(files: Iterable[SourceFile]) -> Iterator[Row]:
    """Yield the rated pairs of the SemEval tasks on similarity, with the name of the file as `set`."""
    for file in files:
        for columns in file.columns():
            # Pairs without a rating have an empty first column.
            if columns[0]:
                a, b = columns[-2:]
                yield {"set": file.path.stem, "score": float(columns[0]), "a": a, "b": b}
