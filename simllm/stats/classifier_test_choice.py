"""The choice of the significance test that compares classifiers with each other."""

from __future__ import annotations

from simllm.stats.mcnemar_and_cochran_q import choose_mcnemar

MANY_DATA_SETS = 6  # from this number on, a test compares data sets instead of items


def choose_for_classifiers(classifiers: int, data_sets: int = 1, runs: int = 1, discordant: int = 0) -> str:
    """Choose the significance test that compares classifiers on the same items.

    Args:
        classifiers: The number of classifiers, at least 2.
        data_sets: The number of data sets.
        runs: The number of runs of each classifier; each run gives one prediction for each item. If the
            classifiers have different numbers of runs, pass the largest number.
        discordant: The number of items that exactly one of the two classifiers gets right. It matters only
            for two classifiers with one run each.

    Returns:
        The name of the test, by the first case that applies:

        - six or more data sets: "wilcoxon" for two classifiers, "friedman-nemenyi" for more
        - two or more runs: "paired-permutation"
        - three or more classifiers: "cochran-q"
        - two classifiers: "mcnemar-exact" if `discordant` is below 25, otherwise "mcnemar-chi2"
    """
    if data_sets >= MANY_DATA_SETS:
        return "wilcoxon" if classifiers == 2 else "friedman-nemenyi"
    if runs > 1:
        return "paired-permutation"
    if classifiers > 2:
        return "cochran-q"
    return choose_mcnemar(discordant)
