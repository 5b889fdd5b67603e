"""The choice of the significance test that compares classifiers with each other."""

from __future__ import annotations

from simllm.stats.mcnemar_and_cochran_q import choose_mcnemar

MANY_DATA_SETS = 6  # from this number on, a test compares data sets instead of items


def choose_for_classifiers(classifiers: int, data_sets: int = 1, runs: int = 1, discordant: int = 0) -> str:
    """Choose the significance test that compares two or more classifiers on the same items.

    `runs` is the largest number of runs of a classifier. `discordant` counts discordant items; it matters
    only for two classifiers with one run each.
    """
    if data_sets >= MANY_DATA_SETS:
        return "wilcoxon" if classifiers == 2 else "friedman-nemenyi"
    # McNemar and Cochran take one right or wrong for each item; with runs, an item has a share.
    if runs > 1:
        return "paired-permutation"
    if classifiers > 2:
        return "cochran-q"
    return choose_mcnemar(discordant)
