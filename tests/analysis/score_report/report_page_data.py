"""Pairs with made scores for a report, and the data in its page."""

import json
import re

import numpy as np

from simllm.analysis.score_report import ScoredPairs


def data_of(page):
    """Return the data about pairs that a page contains as JSON, for its script."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


def run_of(n, **values):
    random = np.random.default_rng(0)
    references = [f"returns the value number {i % 7}" for i in range(n)]
    candidates = [f"gets value {i % 5}" for i in range(n)]
    return ScoredPairs(references, {"": candidates}, {"score": random.uniform(-0.1, 1, n)}, **values)
