"""Filters of repayments: no duplicates, only ASCII, and no long code."""

from __future__ import annotations

import hashlib
import json
import re

from simllm.code.satd_mining.debt_repayments import Repayment

MOST_TOKENS = 1024  # in the code before (source) and after a change (reference)
LATER_RULES = ("no duplicates", "ASCII", f"at most {MOST_TOKENS:,} tokens each")
_TOKEN = re.compile(r"\w+|[^\w\s]")


def fulfilled_later_rules(repayment: Repayment, seen: set[bytes]) -> int:
    """Return how many of `LATER_RULES` a repayment fulfils before it breaks one, from 0 to 3.

    `seen` has hashes of the earlier repayments, to find duplicates; that of this repayment is added.
    """
    texts = (repayment.source, repayment.reference)
    # Copies of a repository often differ in layout only, so that white space does not count.
    content = hashlib.sha256(json.dumps([text.split() for text in texts]).encode()).digest()
    if content in seen:
        return 0
    seen.add(content)
    if not all(text.isascii() for text in texts):
        return 1
    return 2 + all(sum(1 for _ in _TOKEN.finditer(text)) <= MOST_TOKENS for text in texts)
