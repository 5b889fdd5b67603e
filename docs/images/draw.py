"""Draw the figures of the documentation as SVG, each for light and for dark pages.

    python docs/images/draw.py

The agreement with human ratings is read from `checkpoints/default/figures.json`.
"""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).parent
FIGURES = HERE.parents[1] / "checkpoints" / "default" / "figures.json"
FONT = "font-family='system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif'"
THEMES = {
    "light": {"text": "#1f2328", "weak": "#59636e", "line": "#d1d9e0", "box": "#f6f8fa", "accent": "#3f51b5"},
    "dark": {"text": "#e6edf3", "weak": "#9198a1", "line": "#3d444d", "box": "#1b2028", "accent": "#9fa8ff"},
}
SETS = {"rated/haque2022": "Haque et al. 2022", "rated/shen2021_leclair": "Shen et al. 2021"}
METRICS = {"simllm": "simllm", "rouge-l": "ROUGE-L", "jaccard": "Jaccard", "word-vectors": "word vectors"}
PACKAGES = [
    ("cli", "the commands: options, output"),
    ("repair", "models repair code in conversations"),
    ("evaluation", "studies of metrics and classifiers"),
    ("analysis", "comparing systems, explaining a score"),
    ("metric.py", "SimLLM, the learned metric"),
    ("scoring", "encoding, token matching, streaming"),
    ("metrics", "metrics of text and of code"),
    ("perturb", "rewrites of texts and code, by rule"),
    ("execution", "a sandbox for programs, and a judge"),
    ("code", "languages, comments, syntax trees"),
    ("stats", "intervals, tests, correlations, raters"),
    ("model", "encoder, tokenizer, the model folder"),
    ("llm", "asking a language model, and its records"),
    ("io", "files, folders, strict JSON, tables"),
    ("text_cleaning.py", "the cleaning of summaries"),
    ("errors.py", "InputError"),
    ("array_types.py", "types of arrays, for annotations"),
]
TRAINING = [
    "source trees, git, files",
    "comments",
    "cleaned texts, split 9:1",
    "vocabulary, token shards",
    "permuted batches",
    "pretrained or distilled model",
    "contrastive stage",
    "model folder and card",
]
TRAINING_FOLDERS = "corpus corpus tokens pretrain runtime contrastive release".split()
SCORING = ["candidate, reference", "tokens", "states", "embeddings", "scores", "table, JSON, report"]
SCORING_FOLDERS = "model scoring model model io".split()


def agreement(theme: dict[str, str]) -> str:
    """Draw Spearman's correlation with human ratings, and its interval, for each metric and set."""
    spearman = json.loads(FIGURES.read_text(encoding="utf-8"))["spearman"]
    width, height, left, panel, gap = 760, 244, 118, 284, 56
    low, high = 0.5, 0.9
    parts = []
    for number, (name, title) in enumerate(SETS.items()):
        start = left + number * (panel + gap)

        def x(value: float, start: int = start) -> float:
            return start + (value - low) / (high - low) * panel

        rows = spearman[name]
        parts.append(_text(start, 24, title, theme["text"], 15, weight=600))
        parts.append(_text(start, 43, f"{rows['pairs']:,} rated pairs", theme["weak"], 12.5))
        for tick in (0.5, 0.6, 0.7, 0.8, 0.9):
            parts.append(_line(x(tick), 56, x(tick), 196, theme["line"]))
            parts.append(_text(x(tick), 213, f"{tick:.1f}", theme["weak"], 12, anchor="middle"))
        for row, (metric, shown) in enumerate(METRICS.items()):
            y = 74 + row * 34
            found = rows[metric]
            own = metric == "simllm"
            color = theme["accent"] if own else theme["weak"]
            if not number:
                label = theme["accent"] if own else theme["text"]
                parts.append(
                    _text(left - 14, y + 5, shown, label, 14, anchor="end", weight=600 if own else 400)
                )
            parts.append(_line(x(found["low"]), y, x(found["high"]), y, color, 3))
            parts.append(f"<circle cx='{x(found['rho']):.1f}' cy='{y}' r='5.5' fill='{color}'/>")
            value = f"{found['rho']:.3f}".lstrip("0")
            parts.append(_text(x(found["rho"]), y - 10, value, color, 12, anchor="middle"))
    caption = "Spearman correlation with human ratings, with 95% bootstrap intervals"
    parts.append(_text(left, height - 6, caption, theme["weak"], 12.5))
    return _svg(width, height, caption, parts)


def architecture(theme: dict[str, str]) -> str:
    """Draw the packages of the code, and the flow of data through training and scoring."""
    width, row = 960, 36
    height = 96 + row * len(PACKAGES) + 12
    parts = [
        _text(24, 28, "simllm (installed)", theme["text"], 16, weight=600),
        _text(24, 48, "imports only point down this list", theme["weak"], 13),
        _text(508, 28, "train (from a checkout)", theme["text"], 16, weight=600),
        _text(508, 48, "imports simllm, never the reverse", theme["weak"], 13),
        _text(756, 28, "scoring", theme["text"], 16, weight=600),
        _text(756, 48, "from two texts to a score", theme["weak"], 13),
    ]
    for number, (name, what) in enumerate(PACKAGES):
        y = 64 + number * row
        own = name in ("cli", "metric.py")
        parts.append(_box(24, y, 444, row - 6, theme, own))
        parts.append(
            _text(36, y + 20, name, theme["accent"] if own else theme["text"], 13.5, weight=600, mono=True)
        )
        parts.append(_text(208, y + 20, what, theme["text"], 12.5))
    for x, package, steps, folders in (
        (508, "train", TRAINING, TRAINING_FOLDERS),
        (756, "simllm", SCORING, SCORING_FOLDERS),
    ):
        for number, step in enumerate(steps):
            y = 64 + number * 60
            last = number == len(steps) - 1
            parts.append(_box(x, y, 204 if package == "train" else 180, 38, theme, last))
            parts.append(_text(x + 12, y + 24, step, theme["accent"] if last else theme["text"], 13))
            if not last:
                parts.append(_arrow(x + 24, y + 40, y + 58, theme["weak"]))
                folder = f"{package}/{folders[number]}"
                parts.append(_text(x + 38, y + 53, folder, theme["weak"], 11.5, mono=True))
    return _svg(width, height, "The packages of the code, and the flow of data", parts)


def _svg(width: int, height: int, title: str, parts: list[str]) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' "
        f"height='{height}' role='img' {FONT}>\n<title>{title}</title>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _text(
    x: float, y: float, text: str, color: str, size: float, anchor: str = "start", weight: int = 400,
    mono: bool = False,
) -> str:  # fmt: skip
    font = " font-family='ui-monospace, SFMono-Regular, Menlo, Consolas, monospace'" if mono else ""
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' fill='{color}' font-size='{size}' text-anchor='{anchor}' "
        f"font-weight='{weight}'{font}>{text}</text>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, color: str, width: float = 1) -> str:
    return (
        f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{color}' "
        f"stroke-width='{width}' stroke-linecap='round'/>"
    )


def _box(x: float, y: float, width: float, height: float, theme: dict[str, str], strong: bool) -> str:
    stroke = theme["accent"] if strong else theme["line"]
    return (
        f"<rect x='{x}' y='{y}' width='{width}' height='{height}' rx='6' fill='{theme['box']}' "
        f"stroke='{stroke}'/>"
    )


def _arrow(x: float, top: float, bottom: float, color: str) -> str:
    head = f"<path d='M {x - 4} {bottom - 7} L {x} {bottom - 1} L {x + 4} {bottom - 7}' fill='none' "
    return _line(x, top, x, bottom - 2, color, 1.5) + head + f"stroke='{color}' stroke-width='1.5'/>"


def drawings() -> dict[str, str]:
    """Return the SVG of every figure, by file name."""
    return {
        f"{figure.__name__}-{name}.svg": figure(theme)
        for figure in (agreement, architecture)
        for name, theme in THEMES.items()
    }


if __name__ == "__main__":
    for name, content in drawings().items():
        (HERE / name).write_text(content, encoding="utf-8")
