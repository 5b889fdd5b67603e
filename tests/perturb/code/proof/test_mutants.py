from simllm.perturb.code.proof import ProofCase
from simllm.perturb.code.proof.mutants import make_mutants
from simllm.perturb.code.rewriting import rewrite


def mutants(language, original, variant, names=None, number=9):
    return make_mutants(ProofCase("case", language, original, variant, names or {}), number, seed=0)


def test_mistakes_are_made_where_the_rewrite_changed_the_code():
    original = "int f(int n) { int s = 1; for (int i = 0; i < n; i++) { s += 7; } return s; }"
    variant = "int f(int n) { int s = 1; int i = 0; while (i < n) { s += 7; i++; } return s; }"
    found = mutants("java", original, variant)
    assert variant.replace(" i++;", " ;") in found
    assert all("s = 1" in mutant and "s += 7" in mutant for mutant in found)


def test_a_negated_relation_is_flipped_if_nan_matters():
    source = "int f(double x) { if (x < 1) { return 1; } else { return 2; } }"
    variant = rewrite(source, "java", ["reverse-if"]).text
    assert any("x >= 1" in mutant for mutant in mutants("java", source, variant))
    source = source.replace("double", "int")
    assert not any("x >= 1" in mutant for mutant in mutants("java", source, "!(x < 1)"))


def test_a_missing_update_in_python_leaves_a_statement():
    variant = "def f(n):\n    i = 0\n    while i < n:\n        i += 1\n"
    found = mutants("python", "def f(n):\n    for i in range(n):\n        continue\n", variant)
    assert variant.replace("i += 1", "pass") in found


def test_one_use_keeps_its_old_name():
    original, variant = "int f(int a) { return a * a; }", "int f(int first) { return first * first; }"
    (mutant,) = mutants("java", original, variant, {"a": "first"})
    assert mutant.replace("a *", "first *").replace("* a", "* first").replace("int a", "int first") == variant


def test_type_arguments_are_no_relations():
    source = "List<String> f(List<String> xs) { return xs; }"
    assert mutants("java", source, source) == []


def test_mutants_are_limited_and_repeatable():
    source = "int f(int a, int b) { return a < b && b <= 5 && !(a == 3) ? a + 1 : b - 1; }"
    assert len(mutants("java", source, source, number=3)) == 3
    assert mutants("java", source, source) == mutants("java", source, source)
