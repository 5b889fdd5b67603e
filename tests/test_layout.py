"""The order of the packages: each imports only lower packages, and simllm never imports train."""

import ast
from pathlib import Path

import pytest

from tests.conftest import ROOT

# From top to bottom; a package may import itself and the packages below it.
TRAIN = [
    "reproduce",
    "adapt",
    "code_reader",
    "release",
    "contrastive",
    "distill",
    "pretrain",
    "fairseq",
    "data",
    "tokens",
]
TRAIN += ["corpus", "runtime"]
PACKAGES = ["cli", "repair", "evaluation", "analysis", "metric", "scoring", "metrics", "perturb", "execution"]
PACKAGES += ["code", "stats", "model", "llm", "io"]
PACKAGES += ["text_cleaning", "errors", "array_types"]


def modules(package):
    """Return a dict from the name of each module in a package to its file."""
    files = sorted((ROOT / package).rglob("*.py"))
    return {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
        for file in files
    }


OURS = {**modules("simllm"), **modules("train")}


def imports(file: Path) -> set[str]:
    """Return the modules of this project that a file imports, also inside functions and for type checkers."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (names & OURS.keys()) or {node.module}
    return {name for name in found if name.partition(".")[0] in ("simllm", "train")}


def package_of(module):
    return module.split(".")[1] if "." in module else ""


@pytest.mark.parametrize("module", sorted(OURS.keys() - {"simllm", "simllm.__main__", "train"}))
def test_imports_only_point_down(module):
    top = module.partition(".")[0]
    packages = TRAIN if top == "train" else PACKAGES
    here = package_of(module)
    assert here in packages, f"{module}: its package is not in the list"
    for other in imports(OURS[module]) - {"simllm", "train"}:
        if top == "train" and other.startswith("simllm."):
            continue
        assert other.startswith(f"{top}."), f"{module} imports {other}"
        assert packages.index(package_of(other)) >= packages.index(here), (
            f"{module} imports {other}, which stands above it"
        )


def test_there_is_no_import_cycle():
    graph = {name: (imports(file) & OURS.keys()) - {name, "simllm", "train"} for name, file in OURS.items()}
    done, path = set(), []

    def visit(name):
        if name in path:
            cycle = [*path[path.index(name) :], name]
            raise AssertionError(" -> ".join(cycle))
        if name not in done:
            path.append(name)
            for other in sorted(graph[name]):
                if not (
                    name.startswith(f"{other}.") or other.startswith(f"{name}.")
                ):  # a package and its own module
                    visit(other)
            done.add(path.pop())

    for name in graph:
        visit(name)


def test_every_listed_package_exists():
    assert {package_of(name) for name in OURS if name.startswith("simllm.")} - {"__main__"} == set(PACKAGES)
    assert {package_of(name) for name in OURS if name.startswith("train.")} == set(TRAIN)
