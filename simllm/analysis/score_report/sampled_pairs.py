"""Choice of the text pairs that a report shows in its table, if there are too many pairs for one page."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from simllm.analysis.score_report.scored_pairs import ScoredPairs

MOST = 5_000  # pairs that a page shows; more make it slow
_OF_A_KIND = 500  # pairs with the lowest scores, as many with the highest scores, and so on
_SEED = 12345


def choose_pairs(scored: ScoredPairs) -> NDArray[np.int64]:
    """Choose at most 5,000 pairs to show: up to 500 of each kind of extreme pair, the rest at random.

    The returned indices are increasing. The kinds are the lowest and the highest scores, the most and the
    fewest common words for their score, changed pairs, and the largest differences between systems.
    """
    n = len(scored)
    if n <= MOST:
        return np.arange(n)
    main = scored.ranking
    orders = [np.argsort(main), np.argsort(-main), np.argsort(scored.surprise), np.argsort(-scored.surprise)]
    changed = np.flatnonzero(scored.any_changed)
    # Of many changed pairs, those with the highest scores mislead most.
    orders.append(changed[np.argsort(-main[changed])])
    if scored.has_systems:
        gaps = [abs(a - b) for a, b in combinations(scored.scores.values(), 2)]
        orders.append(np.argsort(-np.max(gaps, axis=0)))
    chosen = np.unique(np.concatenate([order[:_OF_A_KIND] for order in orders]))
    rest = np.setdiff1d(np.arange(n), chosen)
    drawn = np.random.default_rng(_SEED).choice(rest, MOST - len(chosen), replace=False)
    return np.sort(np.concatenate([chosen, drawn]))


def describe_choice(scored: ScoredPairs) -> str:
    """Return the report's note about its table: which text pairs the table shows."""
    if len(scored) <= MOST:
        return "The only pair is here." if len(scored) == 1 else f"All {len(scored):,} pairs are here."
    systems = ", the largest differences between systems" if scored.has_systems else ""
    return (
        f"The table holds {MOST:,} of the {len(scored):,} pairs: {_OF_A_KIND} each with the lowest scores, "
        "the highest scores, the most and the fewest common words for their score, a changed "
        f"meaning{systems}, and others drawn at random. All means, intervals and figures are "
        "those of all pairs."
    )
