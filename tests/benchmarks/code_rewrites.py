"""Benchmark of the structural rewrites of code, against parsing and walking the syntax tree.

    python -m tests.benchmarks.code_rewrites --java FOLDER --python FOLDER --json rewrites.json

The sources are whole files, and their single methods or functions. Each source is rewritten, and also parsed
and walked. The fastest of several runs counts. Times are processor seconds.
"""

import argparse
import json
import time
from pathlib import Path

from simllm.code.languages.language import find_language
from simllm.errors import InputError
from simllm.perturb.code import DEFAULT_RULES, rewrite
from tests.benchmarks import machine

STRUCTURAL = [rule for rule in DEFAULT_RULES if not rule.startswith("rename")]
FUNCTIONS = {"java": "method_declaration", "python": "function_definition"}
TURNS = 3


def walk(source, language):
    """Parse a source with py-tree-sitter, and visit each node."""
    stack, count = [find_language(language).parse(source.encode())], 0
    while stack:
        node = stack.pop()
        count += len(node.type)
        stack += node.children
    return count


def functions(source, language):
    """Return the text of each outermost function in a source."""
    code, found = source.encode(), []
    stack = [find_language(language).parse(code)]
    while stack:
        node = stack.pop()
        if node.type == FUNCTIONS[language]:
            before = code[code.rfind(b"\n", 0, node.start_byte) + 1 : node.start_byte]
            found.append((before.decode() if not before.strip() else "") + node.text.decode())
        else:
            stack += node.children
    return found


def seconds(work, sources):
    """Return the seconds that a function takes for all sources, in the fastest of several runs."""
    times = []
    for _ in range(TURNS):
        begun = time.process_time()
        for source in sources:
            work(source)
        times.append(time.process_time() - begun)
    return min(times)


def measure(sources, language):
    """Return the time to rewrite sources, beside the time to parse and walk their syntax trees."""
    usable, counts = [], dict.fromkeys(STRUCTURAL, 0)
    for source in sources:
        try:
            found = rewrite(source, language, STRUCTURAL)
        except InputError:
            continue
        usable.append(source)
        for rule, count in found.counts.items():
            counts[rule] += count
    walked = seconds(lambda source: walk(source, language), usable)
    rewritten = seconds(lambda source: rewrite(source, language, STRUCTURAL), usable)
    return {
        "sources": len(usable),
        "bytes": sum(len(source.encode()) for source in usable),
        "rewritten places": counts,
        "walk seconds": walked,
        "rewrite seconds": rewritten,
        "ratio": rewritten / walked,
        "sources per second": len(usable) / rewritten,
    }


def main():
    """Measure the sources in the given folders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--java", type=Path, help="a folder with Java files")
    parser.add_argument("--python", type=Path, help="a folder with Python files")
    parser.add_argument("--files", type=int, default=100, help="number of files of each language")
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    options = parser.parse_args()
    figures = {}
    for language, suffix in (("java", "java"), ("python", "py")):
        folder = getattr(options, language)
        if folder is None:
            continue
        files = sorted(folder.rglob(f"*.{suffix}"))[: options.files]
        texts = [file.read_bytes().decode(errors="ignore") for file in files]
        alone = [function for text in texts for function in functions(text, language)]
        figures[language] = {"files": measure(texts, language), "functions": measure(alone, language)}
    print(json.dumps(figures, indent=2))
    if options.json:
        machine.write(options.json, **figures)


if __name__ == "__main__":
    main()
