"""Alarms about comments, and their formats: text, JSON, SARIF and annotations of GitHub."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import simllm
from simllm.analysis.comment_check.documentation import read_documentation
from simllm.analysis.comment_check.rules import RULES, is_cosmetic
from simllm.analysis.comment_check.search import Case
from simllm.code.languages.language import load_language
from simllm.io.tables import on_one_line

if TYPE_CHECKING:
    from simllm.scoring.code import CodeReader

_LONGEST_SENTENCE = 200  # characters that are shown


@dataclass(frozen=True)
class Alarm:
    """A comment that does not fit its code.

    Attributes:
        path: The file; see `Case`.
        line: The line of the sentence, from 1.
        rule: A name in `RULES`.
        sentence: What the comment says.
        reason: What contradicts the sentence, in one line.
        fit_before: How well the comment fitted the code before a change, as the model reads both; None if
            there is no such code, or no model was asked.
        fit: How well it fits now.
    """

    path: str
    line: int
    function: str
    rule: str
    sentence: str
    reason: str
    fit_before: float | None = None
    fit: float | None = None


@dataclass(frozen=True)
class FitLimits:
    """When the fit of comment and code alone makes an alarm.

    Attributes:
        fall: The smallest fall of the fit by a change of the code; None for no such alarms.
        least: The smallest fit that is no alarm; None for no such alarms.
    """

    fall: float | None = None
    least: float | None = None


def alarms_of(cases: Iterable[Case], reader: CodeReader | None, limits: FitLimits) -> list[Alarm]:
    """Return the alarms about cases, ordered by place; a reader tells how well comments fit."""
    alarms = list[Alarm]()
    if reader is None:
        alarms = [alarm for case in cases for alarm in _broken(case, (None, None))]
    else:
        kept = [
            case for case in cases if case.broken or not (case.old and is_cosmetic(case.old, case.function))
        ]
        for case, fits in zip(kept, _fits(kept, reader), strict=True):
            alarms += _broken(case, fits) or _unfit(case, fits, limits)
    rules = list(RULES)
    return sorted(alarms, key=lambda alarm: (alarm.path, alarm.line, rules.index(alarm.rule)))


def _broken(case: Case, fits: tuple[float | None, float | None]) -> list[Alarm]:
    return [
        _alarm(case, each.rule, each.claim.sentence, each.claim.line, each.reason, fits)
        for each in case.broken
    ]


def _unfit(case: Case, fits: tuple[float | None, float], limits: FitLimits) -> list[Alarm]:
    """Return an alarm if the fit alone is beyond a limit."""
    before, now = fits
    lines = read_documentation(case.function.comment, case.function.language).lines
    line, first = next(((n, text) for n, text in enumerate(lines) if text.strip()), (0, ""))
    if limits.fall is not None and before is not None and before - now >= limits.fall:
        reason = f"the code changed, and the fit fell from {before:.2f} to {now:.2f}"
        return [_alarm(case, "lower-fit", first, line, reason, fits)]
    if limits.least is not None and now < limits.least:
        return [_alarm(case, "poor-fit", first, line, f"the fit is {now:.2f}", fits)]
    return []


def _alarm(
    case: Case, rule: str, sentence: str, line: int, reason: str, fits: tuple[float | None, float | None]
) -> Alarm:
    function = case.function
    place = (case.path, function.line + line, function.name)
    return Alarm(*place, rule, _shown(sentence), on_one_line(reason), *fits)


def _fits(cases: Sequence[Case], reader: CodeReader) -> list[tuple[float | None, float]]:
    """Return how well each comment fitted the old code (None without old code), and fits the code now."""
    from simllm.scoring.code import CodePair  # late, because torch is slow

    functions = [each for case in cases for each in (case.old, case.function) if each]
    pairs = [
        CodePair(each.code, load_language(each.language).strip_marks(each.comment), each.language)
        for each in functions
    ]
    scores = reader.score(pairs)
    values = iter((scores.values if scores.fits is None else scores.fits).tolist())
    return [(next(values) if case.old else None, next(values)) for case in cases]


def _shown(sentence: str) -> str:
    line = on_one_line(sentence)
    return line if len(line) <= _LONGEST_SENTENCE else line[: _LONGEST_SENTENCE - 1] + "…"


def to_text(alarms: Iterable[Alarm]) -> str:
    """Format alarms as text: the place and the reason on a line, the sentence on the next."""
    return "".join(
        f"{alarm.path}:{alarm.line}: {alarm.function}: {alarm.reason} [{alarm.rule}]{_fall(alarm)}\n"
        f"    {alarm.sentence}\n"
        for alarm in alarms
    )


def _fall(alarm: Alarm) -> str:
    if alarm.fit is None:
        return ""
    before = f"{alarm.fit_before:.2f} → " if alarm.fit_before is not None else ""
    return f" (fit {before}{alarm.fit:.2f})"


def to_json(alarms: Sequence[Alarm], facts: dict[str, Any]) -> str:
    """Format alarms and the facts of the search as a JSON object."""
    return json.dumps({"alarms": [asdict(alarm) for alarm in alarms], **facts}, indent=1) + "\n"


def to_github(alarms: Iterable[Alarm]) -> str:
    """Format alarms as workflow commands, which GitHub shows beside the changed lines of a pull request."""
    return "".join(
        f"::warning file={_property(alarm.path)},line={alarm.line},title={_property(alarm.rule)}"
        f"::{_data(f'{alarm.function}: {alarm.reason}. The comment says: {alarm.sentence}')}\n"
        for alarm in alarms
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"


def to_sarif(alarms: Sequence[Alarm], notes: Sequence[str]) -> str:
    """Format alarms as SARIF 2.1.0, with notes about what was left out."""
    rules = [
        {"id": name, "shortDescription": {"text": text}, "defaultConfiguration": {"level": "warning"}}
        for name, text in RULES.items()
    ]
    driver = {"name": "simllm", "version": simllm.__version__, "semanticVersion": _semantic(), "rules": rules}
    notifications = [{"level": "note", "message": {"text": note}} for note in notes]
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notifications}],
        "results": [_result(alarm) for alarm in alarms],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _semantic() -> str:
    """Return the version in the form of semantic versions, without suffixes such as `.dev1`."""
    numbers = re.findall(r"\d+", simllm.__version__)[:3]
    return ".".join([*numbers, "0", "0"][:3])


def _result(alarm: Alarm) -> dict[str, Any]:
    location = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(alarm.path)},
            "region": {"startLine": alarm.line},
        },
        "logicalLocations": [{"fullyQualifiedName": alarm.function, "kind": "function"}],
    }
    fits = {"fitBefore": alarm.fit_before, "fit": alarm.fit}
    return {
        "ruleId": alarm.rule,
        "ruleIndex": list(RULES).index(alarm.rule),
        "level": "warning",
        "message": {"text": f"{alarm.function}: {alarm.reason}. The comment says: {alarm.sentence}"},
        "locations": [location],
        "properties": {"sentence": alarm.sentence, **{k: v for k, v in fits.items() if v is not None}},
    }


def _uri(path: str) -> str:
    return Path(path).as_uri() if Path(path).is_absolute() else quote(path)
