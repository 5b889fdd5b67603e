"""A small driver of the Python rules: it applies rules in order, as users of them do."""

from collections import Counter
from random import Random

from simllm.perturb.code.code_unit import Site, Symbol
from simllm.perturb.code.python.python_rules import RULES
from simllm.perturb.code.source_edits import Edit, apply_edits

DEFAULT = ["rename-function", "rename-parameter", "rename-variable", *list(RULES.structural)[:6]]


def rewrite(source, rules, name=None, share=1.0, seed=0, counts=None):
    """Apply rules in order at every site, or at a random share of the sites.

    Args:
        source: The bytes of the code.
        rules: The names of the rules.
        name: Takes an old name and returns the new one, or None to keep the name.
        share: The share of the sites.
        seed: The seed of the choice.
        counts: Counts (rule, "rewritten" or the reason to skip), if given.
    """
    random, counts = Random(seed), Counter() if counts is None else counts
    for rule in rules:
        unit = RULES.parse(source)
        edits = []
        if rule.startswith("rename-"):
            given = set()
            for symbol in RULES.symbols(unit):
                if not isinstance(symbol, Symbol):
                    counts[rule, symbol.reason] += 1
                elif symbol.kind == rule.removeprefix("rename-"):
                    new = name(symbol.name)
                    if new is None or new in RULES.reserved | RULES.taken_names(unit) | given:
                        counts[rule, "the namer has no free name"] += 1
                        continue
                    if random.random() < share:
                        given.add(new)
                        counts[rule, "rewritten"] += 1
                        edits += [Edit(*use, (new.encode(),)) for use in symbol.uses]
        else:
            for site in RULES.structural[rule](unit):
                if not isinstance(site, Site):
                    counts[rule, site.reason] += 1
                elif random.random() < share:
                    counts[rule, "rewritten"] += 1
                    edits += site.edits
        frame = unit.text[: unit.source.start]
        source = b"".join(piece.text for piece in apply_edits(unit.text, edits)).removeprefix(frame)
    return source


def outcome(module, entry, call, observe=()):
    """Run a call in a module, and return its result, arguments and observed expressions as one string."""
    arguments = eval(f"[{', '.join(call)}]", module)
    try:
        result = repr(module[entry](*arguments))
    except Exception as error:
        result = f"raises {type(error).__name__}"
    shown = ["<iterator>" if hasattr(value, "__next__") else repr(value) for value in arguments]
    return " | ".join([result, *shown, *(repr(eval(text, module)) for text in observe)])
