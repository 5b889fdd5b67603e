"""Proofs of many cases: order, batches, errors, JSON lines, and all reference functions."""

import ast
import json
import sysconfig
from itertools import islice
from pathlib import Path

import pytest

from simllm.errors import InputError
from simllm.perturb.code.proof import ProofCase, ProofSummary, prove
from simllm.perturb.code.proof.testing import prove_variants
from simllm.perturb.code.rewriting import rewrite
from tests.command import run

PYTHON = "def f(n: int):\n    return n < {n}\n"


def python_cases(count):
    return [ProofCase(str(n), "python", PYTHON.format(n=n), PYTHON.format(n=n)) for n in range(count)]


def test_rejects_unknown_languages(sandbox):
    with pytest.raises(InputError, match="cannot prove 'ruby'; expected one of java, python"):
        list(prove([ProofCase("a", "ruby", "", "")], sandbox))


@pytest.mark.slow
def test_proofs_do_not_depend_on_batches_and_threads(sandbox):
    cases = python_cases(150)
    cases[70] = ProofCase("70", "python", "def f(n: int): return n\n", "def f(n: int): return n + 1\n")
    proofs = list(prove(cases, sandbox, inputs=8, parallel=2))
    assert [proof.id for proof in proofs] == [case.id for case in cases]
    assert [proof.id for proof in proofs if proof.verdict != "proven"] == ["70"]
    assert list(prove(cases[60:80], sandbox, inputs=8)) == proofs[60:80]


@pytest.mark.slow
def test_cases_are_read_as_they_are_needed(sandbox):
    read = []
    cases = (read.append(case.id) or case for case in python_cases(1000))
    next(iter(prove(cases, sandbox, inputs=1, mutants=0)))
    assert len(read) <= 64 * 3


def test_no_mutants_no_power(sandbox):
    summary = ProofSummary()
    for proof in prove(python_cases(3), sandbox, inputs=4, mutants=0):
        summary.add(proof)
    assert (summary.verdicts["unproven"], summary.inputs, summary.mutants, summary.power) == (3, 12, 0, None)


def variants(shared, language):
    """Yield each reference function with the variant that its rules make of it."""
    for case in json.loads((shared / "reference" / f"metamorphic-{language}.json").read_text())["cases"]:
        found = rewrite(case["source"], language, case["rules"], case.get("names", {}))
        around = case.get("members") or case.get("around") or ""
        yield ProofCase(case["id"], language, case["source"], found.text, found.names, around)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["java", "python"])
def test_rewritten_reference_functions_are_proven(shared, sandbox, language):
    summary = ProofSummary()
    for proof in prove(variants(shared, language), sandbox, parallel=2):
        summary.add(proof)
        needs_an_iterator = proof.id == "py-ei-subscript"
        assert proof.verdict == ("proven" if proof.mutants else "unproven") or needs_an_iterator, proof
    assert summary.power > 0.9
    assert summary.mutants > 50


@pytest.mark.slow
@pytest.mark.usefixtures("javac")
def test_wrong_reference_variants_are_refuted(shared, sandbox):
    """These variants of published tools are known to behave differently, or not to compile."""
    reference = json.loads((shared / "reference" / "metamorphic-java.json").read_text())["cases"]
    wrong = [case for case in reference if case["upstream"]["verdict"] in ("differs", "does not compile")]
    cases = [
        ProofCase(case["id"], "java", case["source"], case["upstream"]["output"], case.get("names", {}),
                  case.get("members", ""))
        for case in wrong
    ]  # fmt: skip
    proofs = list(prove(cases, sandbox, mutants=0))
    assert [proof.id for proof in proofs if proof.verdict != "refuted"] == []
    assert len(proofs) == 32


def library_functions():
    """Yield functions of Python's standard library, each with the imports of its module."""
    for file in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text = file.read_text(encoding="utf-8")
        body = ast.parse(text).body
        imports = [node for node in body if isinstance(node, ast.Import)]
        around = "".join(f"{ast.unparse(node)}\n" for node in imports)
        for node in body:
            if isinstance(node, ast.FunctionDef) and not node.decorator_list:
                source = ast.get_source_segment(text, node) + "\n"
                yield ProofCase(f"{file.stem}.{node.name}", "python", source, source, {}, around)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:<unknown>")
def test_functions_of_the_standard_library_are_not_refuted_by_themselves(sandbox):
    summary = ProofSummary()
    for proof in prove(islice(library_functions(), 0, None, 3), sandbox, inputs=16, parallel=2):
        summary.add(proof)
        assert proof.verdict != "refuted", proof
    assert summary.verdicts["proven"] > 70
    assert summary.verdicts["proven"] + summary.verdicts["unproven"] > 100


FUNCTION = "int f(int a, int b) {\n    return a < b ? 1 : 2;\n}"


@pytest.mark.slow
def test_variants_of_functions_are_proven(sandbox, javac, tmp_path):
    sources = {"one": FUNCTION, "bad": "int f( {", "same": "int g() {\n    return 1;\n}"}
    rows = [{"id": name, "language": "java", "source": source} for name, source in sources.items()]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["--jsonl", tmp_path / "items.jsonl", "--rules", "swap-relation", "--prove", "inputs"]
    done = run("perturb", "code", *words)
    assert done.returncode == 0, done.stderr
    one, bad, same = map(json.loads, done.stdout.splitlines())
    assert one["proof"]["verdict"] == "proven"
    assert one["proof"]["inputs"] > 20
    assert one["proof"]["killed_mutants"] == one["proof"]["mutants"] > 0
    assert "proof" not in bad
    assert same["proof"] == {"verdict": "parsed"}
    assert "proofs: 1 proven" in done.stderr


def test_a_refuted_variant_is_kept_back(sandbox, javac):
    item = {"id": "a", "language": "java", "source": FUNCTION}
    row = {"id": "a", "language": "java", "status": "rewritten", "names": {}, "counts": {"swap-relation": 1}}
    (found,) = prove_variants([(item, row | {"text": FUNCTION.replace("<", ">")})], sandbox)
    assert (found["id"], found["status"], found["proof"]["verdict"]) == ("a", "refuted", "refuted")
    assert found["proof"]["counterexample"]["arguments"]
    assert found.keys() == {"id", "language", "status", "proof"}
