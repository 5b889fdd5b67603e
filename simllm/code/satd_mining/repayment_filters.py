"""Filters of code changes that may repay technical debt: no duplicates, only ASCII, and no long code.

Such a change is called a repayment. It has the code of a function before and after a commit.
"""

from __future__ import annotations

import hashlib
import json
import re

from simllm.code.satd_mining.debt_repayments import Repayment

MOST_TOKENS = 1024  # in the code before (source) and after a change (reference)
LATER_RULES = ("no duplicates", "ASCII", f"at most {MOST_TOKENS:,} tokens each")
_TOKEN = re.compile(r"\w+|[^\w\s]")


def fulfilled_later_rules(repayment: Repayment, seen: set[bytes]) -> int:
    """Check three rules in order, and count the rules that a repayment fulfils before it breaks one.

    A repayment is the code of a function before and after a commit that may have repaid technical debt. The
    rules (`LATER_RULES`) are, in this order: the repayment is not a duplicate; both versions of the code are
    ASCII; each version has at most 1,024 tokens.

    Args:
        repayment: The repayment.
        seen: Hashes of the earlier repayments, to find duplicates. The hash of this repayment is added.

    Returns:
        A number from 0 (a duplicate) to 3 (all rules are fulfilled).
    """
    texts = (repayment.source, repayment.reference)
    content = hashlib.sha256(json.dumps([text.split() for text in texts]).encode()).digest()
    if content in seen:
        return 0
    seen.add(content)
    if not all(text.isascii() for text in texts):
        return 1
    return 2 + all(sum(1 for _ in _TOKEN.finditer(text)) <= MOST_TOKENS for text in texts)
