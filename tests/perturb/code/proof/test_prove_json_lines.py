"""`simllm perturb code --prove inputs` writes a proof with each variant, but no refuted variants."""

import json

from simllm.perturb.code.proof.testing import prove_variants
from tests.command import run

FUNCTION = "int f(int a, int b) {\n    return a < b ? 1 : 2;\n}"


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
