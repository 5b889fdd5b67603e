"""Old names in the place of new ones, in rewritten code and in other texts."""

from simllm.perturb.code import rename_text, restore, rewrite

SOURCE = "int f(int a, int b) {\n    // a and b\n    int total = a + b;\n    return total;\n}\n"


def test_renamed_code_can_be_restored():
    rules = ("rename-function", "rename-parameter", "rename-variable")
    found = rewrite(SOURCE, "java", rules, "plain")
    assert found.names == {"f": "f0", "a": "p0", "b": "p1", "total": "v0"}
    assert (
        found.text == "int f0(int p0, int p1) {\n    // a and b\n    int v0 = p0 + p1;\n    return v0;\n}\n"
    )
    assert restore(found.text, found.names) == SOURCE
    assert rename_text("f(1, 2) at Unit.f, fa", found.names) == "f0(1, 2) at Unit.f0, fa"
