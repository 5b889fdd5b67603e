"""Benchmark of the metrics for code edits and of the tree edit distance, against code of other authors.

    simllm mine satd JAVA_REPOSITORY -o items.jsonl
    python -m tests.benchmarks.code_metrics --mined items.jsonl --published SATD_tool.py

Python items are made from functions of the standard library: the reference adds two lines to the function.
The items of `--mined` come from git histories: the source and the reference are a function before and after
its technical debt was repaid. In all items, the candidate is the reference with two changed names.

`SATD_tool.py` is the code that Sheikhaei et al. published (SATD-Auto-Repayment); it needs the packages black,
crystalbleu, Levenshtein and pandas. simllm and the published code score the same items several times, and the
fastest time of each counts. The tree edit distances of the packages apted, zss and edist are timed, too, if
they are installed.
"""

import argparse
import ast
import inspect
import itertools
import json
import random
import re
import statistics
import textwrap
import time
from collections import Counter
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from operator import attrgetter
from pathlib import Path

from simllm import metrics
from simllm.code import normal_form
from simllm.code.tree_distance import syntax_tree, tree_edit_distance
from simllm.metrics import Example
from simllm.metrics.code import similarity
from tests.benchmarks import machine

MODULES = [
    *"argparse ast calendar configparser csv datetime difflib inspect json.decoder logging optparse".split(),
    *"shutil smtplib statistics subprocess tarfile textwrap threading tokenize traceback typing".split(),
    *"unittest.case zipfile".split(),
]
NAMES = ("exact-match", "lemod", "bleu-diff", "crystalbleu-diff")


def mined_items(file, count):
    """Return items of `simllm mine satd`; each candidate is the reference with two changed names."""
    random_ = random.Random(0)
    rows = [json.loads(line) for line in file.read_text().splitlines()][:count]
    return [
        Example(renamed(row["reference"], random_, False), row["reference"], row["source"], row["language"])
        for row in rows
    ]


def functions():
    """Return the source texts of functions in the standard library."""
    found = []
    for name in MODULES:
        text = inspect.getsource(import_module(name))
        nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
        found += [textwrap.dedent(ast.get_source_segment(text, node, padded=True)) for node in nodes]
    return [text for text in dict.fromkeys(found) if 5 <= text.count("\n") <= 60]


def renamed(text, random_, everywhere):
    """Change two random names in a text: everywhere if `everywhere`, otherwise at one place each."""
    words = sorted(set(re.findall(r"\b[a-z_]{4,}\b", text)))
    for word in random_.sample(words, min(2, len(words))):
        places = list(re.finditer(rf"\b{word}\b", text))
        for match in reversed(places if everywhere else [random_.choice(places)]):
            text = text[: match.end()] + "_x" + text[match.end() :]
    return text


def items(count):
    """Return Python examples, made from functions of the standard library.

    The reference is the function with two inserted lines. The candidate is the reference with two changed
    names.
    """
    random_, texts, made = random.Random(0), functions(), []
    for source in itertools.cycle(texts):
        if len(made) == count:
            break
        lines = source.split("\n")
        place = random_.randrange(2, len(lines))
        indent = " " * (len(lines[place - 1]) - len(lines[place - 1].lstrip()))
        new = [f"{indent}# checked {len(made)}", f"{indent}check({len(made)})"]
        reference = "\n".join([*lines[:place], *new, *lines[place:]])
        candidate = renamed(reference, random_, False)
        if parses(reference) and parses(candidate):
            made.append(Example(candidate, reference, source, "python"))
    return made


def parses(text):
    """Return whether a text is valid Python."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def load_published(file):
    """Load the file with the published metrics as a module."""
    spec = spec_from_file_location("SATD_tool", file)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def score_as_published(published, examples):
    """Score examples by the metrics in `NAMES`, with the published functions."""
    language = examples[0].language.capitalize()
    words = " ".join(example.reference for example in examples).split()
    ngrams = (zip(*(words[start:] for start in range(n)), strict=False) for n in (1, 2, 3, 4))
    shared = dict(Counter(itertools.chain.from_iterable(ngrams)).most_common(500))
    for example in examples:
        try:
            published.exact_match(example.candidate, example.reference, language, True)
        except Exception:  # black cannot format it
            published.exact_match(
                example.candidate, example.reference, language, True, ignore_whitespace=True
            )
    references, candidates = (
        {
            number: "\n".join(published.get_updated_or_new_lines(example.source, text(example), language))
            for number, example in enumerate(examples)
        }
        for text in (attrgetter("reference"), attrgetter("candidate"))
    )
    published.get_linePRF(references, candidates, language, True)
    published.get_BLEU(references, candidates, language, True)
    published.get_crystalBLEU(references, candidates, language, True, shared)


def score(examples):
    """Score examples by the metrics in `NAMES`, with simllm."""
    for name in NAMES:
        metrics.load(name).score(examples)


def fastest(function, turns=3):
    """Return the seconds of the fastest of several calls; caches are emptied before each call."""
    times = []
    for _ in range(turns):
        for cached in (
            normal_form._printed_python,
            normal_form._token_lines,
            similarity.edits,
        ):
            cached.cache_clear()
        begun = time.perf_counter()
        function()
        times.append(time.perf_counter() - begun)
    return min(times)


def tree_pairs(count):
    """Return pairs of syntax trees with 200 to 400 nodes, for each of three kinds of difference.

    The trees are those of a function and of the function with two names changed at one place each, or with
    two names changed everywhere, or of two different functions.
    """
    random_ = random.Random(1)
    texts = [text for text in functions() if 200 <= len(syntax_tree(text, "python")) <= 400]
    random_.shuffle(texts)
    ways = {
        "two places changed": [(text, renamed(text, random_, False)) for text in texts[:count]],
        "two names changed everywhere": [(text, renamed(text, random_, True)) for text in texts[:count]],
        "different functions": list(zip(texts, texts[count:], strict=False))[: count // 2],
    }
    return {
        name: [tuple(syntax_tree(text, "python") for text in pair) for pair in found]
        for name, found in ways.items()
    }


def apted_distance(first, second):
    """Return a function that computes the distance of two trees by the package apted."""
    from apted import APTED
    from apted.helpers import Tree

    trees = [nested(tree, lambda label, children: Tree(label, *children)) for tree in (first, second)]
    return lambda: APTED(*trees).compute_edit_distance()


def zss_distance(first, second):
    """Return a function that computes the distance of two trees by the package zss."""
    import zss

    trees = [nested(tree, zss.Node) for tree in (first, second)]
    return lambda: zss.simple_distance(*trees, label_dist=lambda one, other: int(one != other))


def edist_distance(first, second):
    """Return a function that computes the distance of two trees by the package edist."""
    from edist import ted

    lists = []
    for tree in (first, second):
        lists += [list(tree.labels), [list(tree.children(node)) for node in range(len(tree))]]
        order = preorder(lists[-1])
        place = {node: number for number, node in enumerate(order)}
        lists[-2] = [lists[-2][node] for node in order]
        lists[-1] = [[place[child] for child in lists[-1][node]] for node in order]
    return lambda: ted.ted(*lists)


PACKAGES = {"apted": apted_distance, "zss": zss_distance, "edist": edist_distance}


def nested(tree, make):
    """Convert a tree to nodes of another package, made by `make(label, children)`; return the root."""
    stack = []
    for node, label in enumerate(tree.labels):
        first = len(stack) - len(tree.children(node))
        stack[first:] = [make(label, stack[first:])]
    return stack[0]


def preorder(children):
    """Return the indices of a tree's nodes, parents before children.

    `children` has the list of children of each node; the last node is the root.
    """
    order, waiting = [], [len(children) - 1]
    while waiting:
        order.append(waiting.pop())
        waiting += reversed(children[order[-1]])
    return order


def compare_distances(pairs):
    """Return the speed of our tree edit distance, and how many times as fast it is as other packages."""
    times = {name: [] for name in ("simllm", *filter(find_spec, PACKAGES))}
    for pair in pairs:
        ways = {"simllm": lambda pair=pair: tree_edit_distance(*pair)}
        ways |= {name: PACKAGES[name](*pair) for name in times if name in PACKAGES}
        distances = set()
        for name, way in ways.items():
            begun = time.perf_counter()
            distances.add(float(way()))
            times[name].append(time.perf_counter() - begun)
        assert len(distances) == 1, distances
    ours = times.pop("simllm")
    speeds = {"pairs": len(pairs), "median ms": 1000 * statistics.median(ours)}
    for name, theirs in times.items():
        ratios = [their / our for their, our in zip(theirs, ours, strict=True)]
        speeds[f"median times as fast as {name}"] = statistics.median(ratios)
        speeds[f"in sum times as fast as {name}"] = sum(theirs) / sum(ours)
    return speeds


def compare_speeds(examples, published):
    """Return the items per second of simllm and of the published code."""
    ours = fastest(lambda: score(examples)) / len(examples)
    speeds = {"items": len(examples), "simllm": 1 / ours}
    if published:
        theirs = fastest(lambda: score_as_published(published, examples)) / len(examples)
        speeds |= {"published code": 1 / theirs, "ratio": theirs / ours}
    return speeds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--mined", type=Path, metavar="FILE", help="items of one language, from `simllm mine satd`"
    )
    parser.add_argument("--published", type=Path, metavar="FILE", help="the published module SATD_tool.py")
    parser.add_argument("--items", type=int, default=500)
    parser.add_argument("--trees", type=int, default=30)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    published = load_published(options.published) if options.published else None
    languages = {"python": items(options.items)}
    if options.mined:
        mined = mined_items(options.mined, options.items)
        languages[mined[0].language] = mined
    result = {**machine.facts(), "items per second": {}, "tree edit distance": {}}
    for language, examples in languages.items():
        result["items per second"][language] = compare_speeds(examples, published)
    for name, pairs in tree_pairs(options.trees).items():
        result["tree edit distance"][name] = compare_distances(pairs)
    print(json.dumps(result, indent=1))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
