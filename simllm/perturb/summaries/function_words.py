"""Lists of function words: determiners, prepositions, conjunctions, pronouns and auxiliaries."""

from __future__ import annotations

DETERMINERS = frozenset("the a an this that these those its their each every any all some no".split())
PREPOSITIONS = frozenset(
    "of in on at by for from to into onto with without within between under over after before as than "
    "through via per about against during until since across along using".split()
)
CONJUNCTIONS = frozenset("and or but if when whether while unless".split())
FUNCTION_WORDS = frozenset(DETERMINERS | PREPOSITIONS | CONJUNCTIONS) | frozenset(
    "is are was were be been being has have had do does did not "
    "it they them he she we you i which who whose will can could should must may might so then else there "
    "here only also such same other both either neither".split()
)
BEFORE_VERBS = frozenset(
    "to that which and or then will can could should must may might not never always also it they we you "
    "who only does do did cannot".split()
)
