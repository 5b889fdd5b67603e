"""The judge: a language model that is asked whether a repayment is real, its answers, and their quality."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simllm.errors import InputError, OptionError
from simllm.io import reading
from simllm.llm.answers import read_label
from simllm.llm.model import Model
from simllm.llm.reply import Reply
from simllm.llm.session import Question
from simllm.llm.templates import Templates, find_template

_LABELS = ("yes", "no", "unclear")
VERDICTS = (*_LABELS, "failed")
INTERVAL = ", 95% interval"  # after the name of a figure, that of its interval
_FIELDS = ("language", "comment", "function", "path", "source", "reference", "item")


@dataclass(frozen=True, kw_only=True)
class Judge(Model):
    """A model that judges repayments.

    Attributes:
        template: The name of a ready template, or the file of one, over the fields of an item.
    """

    template: str = "satd-judge"


class Prompts:
    """The questions of a judge, made from its template; a relative path of a template is below `folder`."""

    def __init__(self, judge: Judge, folder: Path) -> None:
        file = find_template(judge.template, folder)
        self._name = str(file)
        self._templates = Templates({self._name: reading.whole_text(file)}, _FIELDS)
        self._templates.check()

    def question(self, item: Mapping[str, Any]) -> Question:
        """Return the question about an item; equal questions share their answer."""
        values = {name: item.get(name, "") for name in _FIELDS} | {"item": dict(item)}
        return Question(self._templates.render(self._name, values))


def verdict(reply: Reply) -> str:
    """Return one of `VERDICTS`: the label that the model's answer names, or "unclear", or "failed"."""
    return "failed" if reply.text is None else read_label(reply.text, _LABELS) or "unclear"


_WORDS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


def read_labels(file: Path) -> dict[str, bool]:
    """Read the labels of people: JSON lines with the `id` of an item, and `label`, which is yes or no.

    Raises:
        InputError: A line lacks a key, has another label, or the id of an earlier line.
    """
    labels = dict[str, bool]()
    for where, row in reading.objects(file):
        id_ = str(reading.value_under(row, "id", where, "the id of an item"))
        label = str(reading.value_under(row, "label", where, "yes or no")).strip().lower()
        if label not in _WORDS:
            raise InputError(f'{where}: expected yes or no under "label"')
        if id_ in labels:
            raise InputError(f"{where}: a second label of item {id_}")
        labels[id_] = _WORDS[label]
    if not labels:
        raise InputError(f"{file}: empty; expected labels")
    return labels


def quality(verdicts: Mapping[str, str], labels: Mapping[str, bool]) -> dict[str, Any]:
    """Compare verdicts with the labels of people, by the ids of items: a change is kept, or it is not.

    "unclear" and "failed" count as not kept, as the judge drops these changes. A value that is not defined is
    None.
    """
    from simllm.stats.classification import binary_metrics, count
    from simllm.stats.intervals import wilson

    ids = sorted(labels.keys() & verdicts.keys())
    if not ids:
        raise OptionError("{labelled}: no item that was judged has a label; the ids are those of the items")
    gold = np.array([not labels[id_] for id_ in ids], dtype=np.int64)
    kept = np.array([verdicts[id_] != "yes" for id_ in ids], dtype=np.int64)
    cells = count(gold, kept, 2)
    (right, missed), (wrong, dropped) = cells[:, :2].tolist()
    values = {name: float(value) for name, value in binary_metrics(cells).items()}
    intervals = {"precision": wilson(right, right + wrong), "recall": wilson(right, right + missed)}
    defined = {
        "precision": right + wrong, "recall": right + missed, "f1": 2 * right + wrong + missed,
        "accuracy": len(ids), "kappa": len(set(gold.tolist())) > 1,
    }  # fmt: skip
    return {
        "labelled": len(ids),
        "labels without a verdict": len(labels) - len(ids),
        **{name: values[name] if given else None for name, given in defined.items()},
        **{f"{name}{INTERVAL}": list(ends) if defined[name] else None for name, ends in intervals.items()},
        "kept and real": right,
        "kept, but not real": wrong,
        "dropped, but real": missed,
        "dropped and not real": dropped,
        "unclear": Counter(verdicts[id_] for id_ in ids)["unclear"],
        "share of real changes without a judge": (right + missed) / len(ids),
    }
