"""Pairs with made scores for reports, and helpers that read a report, from its data or in the browser."""

import json
import re

import numpy as np

from simllm.analysis.score_report import ScoredPairs

HOSTILE = [
    "</script><script>document.title = 'taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "\u202eright to left \u05d0\u05d1\u05d2 \u2028 next line",
    "word " * 10_000,
    "'; DROP TABLE pairs; --\t\r\n",
]


def scored_pairs(n):
    """Return a run with n random pairs; pairs in Go score lower than those in Java and Python.

    The first candidates are hostile: for example, they contain HTML that must not take effect.
    """
    random = np.random.default_rng(0)
    languages = random.choice(["go", "java", "python"], n).tolist()
    references = [f"returns the name of user {i % 1000}" for i in range(n)]
    candidates = [f"gets the name of item {i % 700}" for i in range(n)]
    candidates[: len(HOSTILE)] = HOSTILE
    references[-1], candidates[-1] = "", ""
    scores = np.clip(random.normal(0.5, 0.2, n) - 0.1 * (np.array(languages) == "go"), -0.2, 0.99)
    same = random.uniform(0, 1, n)
    return ScoredPairs(
        references,
        {"": candidates},
        {"score": scores, "rouge-l": np.clip(scores + random.normal(0, 0.1, n), 0, 1)},
        same={"score": same},
        changed={"score": (scores > 0.5) & (same < 0.05)},
        ids=[f"key {i}" for i in range(n)],
        groups={"language": languages},
    )


def column(page, name):
    """Return the numbers in the column `name` of the visible table rows."""
    return [float(text) for text in page.locator(f".pairs td[data-name='{name}']").all_inner_texts()]


def data_of(page):
    """Return the data about pairs that a page contains as JSON, for its script."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


def run_of(n, **values):
    random = np.random.default_rng(0)
    references = [f"returns the value number {i % 7}" for i in range(n)]
    candidates = [f"gets value {i % 5}" for i in range(n)]
    return ScoredPairs(references, {"": candidates}, {"score": random.uniform(-0.1, 1, n)}, **values)
