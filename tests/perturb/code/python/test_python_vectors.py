"""The recorded cases of rewritten Python functions: outcomes stay, and sites are found or left."""

import json

from tests.perturb.code.python.rewriting import outcome, rewrite


def check(case):
    """Return what is wrong with the rewrite of a case, or None."""
    source, names = case["source"].encode(), case.get("names", {})
    new = rewrite(source, case["rules"], names.get)
    if case["must"] == "apply" and new == source:
        return "nothing is rewritten"
    if case["must"] == "leave" and new != source:
        return f"rewritten: {new.decode()}"
    for text in (source, new):
        entry = case["entry"]
        if text == new and f"def {entry}(" not in new.decode():
            entry = names[entry]
        code = compile(case.get("around", "") + "\n" + text.decode(), case["id"], "exec")
        found = []
        for call in case["args"]:
            module = {"__name__": "vector"}
            exec(code, module)
            found.append(outcome(module, entry, call, case.get("observe", [])))
        if found != case["outcomes"]:
            return f"{found} instead of {case['outcomes']}:\n{text.decode()}"
    return None


def test_recorded_cases_hold(shared):
    cases = json.loads((shared / "reference" / "metamorphic-python.json").read_text(encoding="utf-8"))["cases"]
    assert len(cases) == 56
    wrong = {case["id"]: problem for case in cases if (problem := check(case))}
    assert not wrong, "\n".join(f"{key}: {problem}" for key, problem in wrong.items())
