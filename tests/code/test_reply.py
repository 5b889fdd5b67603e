"""Extraction of code from a model's reply."""

import json
import time

import pytest

from simllm.code.reply import ReplyCode, code_of_reply

# Vectors that were made for an earlier rule: it took the first of the longest blocks, and no other label.
CHANGED = {
    "equal lines, the first": "a = 3\nb = 4",
    "equal lines: the first": '#include <cstdio>\nint main() {\n    puts("3");\n    return 0;\n}',
    "only another language": "print(1)",
}
OLD = "def half(x):\n    return x\n"
NEW = "def half(x):\n    return x // 2"
DRAFT = "def half(x):\n    y = x\n    y = y / 2\n    return y"
MAIN = '#include <cstdio>\nint main() {\n    int n;\n    scanf("%d", &n);\n    printf("%d\\n", 2 * n);\n}'


def fenced(code, label="python"):
    return f"```{label}\n{code}\n```\n"


def code_in(reply, language="python", **options):
    return code_of_reply(reply, language, **options).text


def test_replies_of_the_reference_vectors(shared):
    cases = json.loads((shared / "reference" / "code-metrics.json").read_text())["extraction"]
    for case in cases:
        expected = CHANGED.get(case["name"], case["code"])
        assert code_in(case["reply"], case["language"]) == expected, case["name"]


def test_programs_of_the_reference_vectors(shared):
    cases = json.loads((shared / "reference" / "repair_extract.json").read_text())["cases"]
    assert len(cases) == 15
    for case in cases:
        expected = CHANGED.get(case["name"], case["code"] and case["code"].removesuffix("\n"))
        source = MAIN if case["language"] == "cpp" else None
        for is_program in (True, False):
            found = code_in(case["reply"], case["language"], is_program=is_program, source=source)
            assert (found and found.removesuffix("\n")) == expected, case["name"]


@pytest.mark.parametrize(
    ("reply", "is_ambiguous"),
    [
        (fenced(NEW) + "It prints:\n" + fenced("1\n2\n3\n4", ""), False),
        (fenced("1\n2\n3\n4", "") + fenced(NEW, "py"), False),
        (fenced(NEW) + "Try it:\n" + fenced("assert half(2) == 1\nassert half(3)\nprint('good')"), False),
        ("First:\n" + fenced(DRAFT) + "No, better:\n" + fenced(NEW), True),
        ("Your code is:\n" + fenced(OLD) + "Change it:\n" + fenced(NEW), False),
        (fenced(NEW) + "It was:\n" + fenced(OLD), False),
        (fenced(NEW) + "Once more:\n" + fenced(NEW), False),
        (fenced(NEW) + fenced("def quarter(x):\n    return x // 4"), False),
        (fenced("pip install x", "bash") + fenced(NEW, ""), False),
        (fenced(NEW, "text"), False),
        (fenced("", "python") + fenced(NEW, "python3"), False),
    ],
)  # fmt: skip
def test_the_block_that_answers_is_chosen(reply, is_ambiguous):
    assert code_of_reply(reply, "python", source=OLD) == ReplyCode(NEW, is_ambiguous)


def test_without_a_source_definitions_are_preferred():
    usage = fenced("print(half(4))\nprint(half(5))\nprint(half(6))")
    assert code_of_reply(fenced(NEW) + usage, "python") == ReplyCode(NEW)
    assert code_of_reply(fenced("a = 1") + fenced("b = 2"), "python") == ReplyCode("b = 2", True)


def test_a_method_is_found_by_the_names_of_its_class():
    old = "class A {\n  int f() { return 1; }\n  int g() { return 2; }\n}\n"
    reply = fenced("int g() { return 3; }", "java") + fenced(
        "class Demo { void run() { new A().g(); } }", "java"
    )
    assert code_of_reply(reply, "java", source=old) == ReplyCode("int g() { return 3; }")


def test_a_script_without_definitions_is_the_block_that_reads_input():
    old, new = "print(len(input()))", "print(len(input().split()))"
    usage = "for text in ('a', 'b c'):  # instead of input()\n    print(len(text.split()))"
    reply = fenced(new) + "For example:\n" + fenced(usage)
    assert code_of_reply(reply, "python", is_program=True, source=old) == ReplyCode(new)


@pytest.mark.parametrize(
    ("language", "label", "code"),
    [
        ("cpp", "c", "int f() { return 1; }"),
        ("cpp", "hpp", "int f();"),
        ("cpp", "C++17", "int f();"),
        ("javascript", "ts", "f()"),
        ("typescript", "js", "f()"),
        ("ruby", "rb", "f"),
        ("python", "language-python", "x=1"),
        ("python", "src/main.py", "x=1"),
        *(("python", label, "x=1") for label in ("python3.11", "{.python}", "python:foo.py", "python,edit")),
        ("python", "Py title=x", "x=1"),
    ],
)  # fmt: skip
def test_labels_of_a_language_or_a_near_one(language, label, code):
    assert code_in(fenced("1\n2\n3", "") + fenced(code, label) + fenced("x", "json"), language) == code


@pytest.mark.parametrize(
    ("reply", "language", "code"),
    [
        ("```json\n{}\n```", "javascript", "{}"),
        ("```json\n{}\n```\n```sh\nls\n```", "javascript", None),
        ("```diff\n-a\n+b\n```\n```\nf()\n```", "java", "f()"),
        ("~~~~python\nx = '''\n~~~\n'''\n~~~~\n", "python", "x = '''\n~~~\n'''"),
        ("Use `x` or ```x = 1```.\n```python\ny = 1\n```", "python", "y = 1"),
        ("```markdown\nHere:\n```python\ny = 1\n```\n```", "python", "y = 1"),
        ('```python\ndef f():\n    """\n    ```\n    f()\n    ```\n    """\n```', "python",
         'def f():\n    """\n    ```\n    f()\n    ```\n    """'),
        ("```python\r\nx = 1\r\n```\r\n", "python", "x = 1"),
        ("```python\nx = 1", "python", "x = 1"),
        ("Use:\n\n@cached\ndef f():\n    return 1\n", "python", "@cached\ndef f():\n    return 1"),
        ("class A:\n  a\n\nSo:\n\ndef g():\n  b\n?", "python", "class A:\n  a\n\nSo:\n\ndef g():\n  b"),
    ],
)  # fmt: skip
def test_fences_and_definitions(reply, language, code):
    assert code_in(reply, language) == code


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (" ```python\nif x:\n  y = '''a\n b'''\n ```", "if x:\n  y = '''a\n b'''"),
        ("1. Do:\n   ```python\n   if x:\n       y = 1\n   ```\n", "if x:\n    y = 1"),
        ("- ```python\n  if x:\n\n      y = 1\n  ```\n", "if x:\n\n    y = 1"),
        ("\t```python\n\tx = 1\n\t```\n", "x = 1"),
        ("> ```python\n> if x:\n>     y = 1\n> ```\n", "if x:\n    y = 1"),
    ],
)
def test_the_blank_before_a_fence_leaves_the_code_as_it_is(reply, code):
    assert code_in(reply, "python") == code


@pytest.mark.parametrize(
    "thoughts",
    [
        f"<think>\nMaybe\n{fenced(DRAFT)}No.\n</think>\n",
        f"<think>so {DRAFT}</think>",
        f"<thinking>\nMaybe\n```python\n{DRAFT}\n</thinking>\n",
        f"The prompt opened the thought.\n{fenced(DRAFT)}</think>\n",
        f"```python\n{DRAFT}\n</think>\n",
        f"[THINK]{fenced(DRAFT)}[/THINK]\n",
        f"<think>\nMaybe\n```python\n{DRAFT}\n```</think>\n",
        f"The prompt opened the thought.\n```python\n{DRAFT}\n```</think>\n",
        f"◁think▷\n{fenced(DRAFT)}◁/think▷\n",
        f"<|begin_of_thought|>\n{fenced(DRAFT)}<|end_of_thought|>\n",
        f"<think>\na <think>\n{fenced(DRAFT)}</think>\n{fenced(DRAFT)}</think>\n",
    ],
)
def test_thoughts_are_dropped(thoughts):
    assert code_of_reply(f"{thoughts}{fenced(NEW)}Done.\n", "python", source=OLD) == ReplyCode(NEW)
    assert code_of_reply(f"{thoughts}\n{NEW}\n", "python", source=OLD).text.strip() == NEW


def test_a_thought_without_an_end_has_no_code():
    assert code_in(f"<think>\nMaybe\n{fenced(DRAFT)}or\n{fenced(NEW)}") is None
    assert code_in(f"{fenced(NEW)}<think>\nOr\n{fenced(DRAFT)}") == NEW


@pytest.mark.parametrize(
    "code", ['x = "<think>"', 's = """\n<think>\na\n</think>\n"""', 't = re.sub("</think>", "", t)']
)
def test_tags_in_code_are_no_thoughts(code):
    assert code_in(f"So:\n{fenced(code)}It removes the tag `</think>` there.") == code


@pytest.mark.parametrize("tag", ["answer", "details", "output"])
def test_a_fence_after_another_tag_is_found(tag):
    assert code_in(f"<{tag}>\nhm\n</{tag}>\n{fenced(NEW)}") == NEW
    assert code_in(f"<{tag}>\n{fenced(NEW)}</{tag}>\n") == NEW


def test_text_with_code_in_it_gives_its_longest_run_of_lines_that_parses():
    reply = "It's (simple:\n\ndef half(x):\n    y = x // 2\n    return y\n\nIsn't it?"
    assert code_in(reply) == "def half(x):\n    y = x // 2\n    return y"


def test_sentences_around_a_program_are_cut():
    around = "Sure, here is the program (it reads n = 1):\n\n{}\n\nIt doubles n. Good luck!\nDone"
    assert code_in(around.format(MAIN), "cpp", is_program=True) == MAIN
    script = "import sys\nfor line in sys.stdin:\n    print(2 * int(line))"
    assert code_in(around.format(script), is_program=True) == script
    assert (
        code_in(f"The method\n{'def f(a)'}\n  2 * a\nend\nYou are welcome", "ruby")
        == "def f(a)\n  2 * a\nend"
    )


@pytest.mark.parametrize(
    ("reply", "language"),
    [
        ("", "java"),
        (" \n", "java"),
        ("I cannot do that.", "java"),
        ("word " * 5000, "java"),
        ("`" * 10_000, "java"),
        ("True", "python"),
        ("Fine", "python"),
        ("Verdict: None", "python"),
        ("nothing to do", "ruby"),
        ("Nothing", "ruby"),
        ("ok", "javascript"),
        ("OK", "typescript"),
        ("Nothing", "go"),
        ("Nothing to change here", "php"),
        ("print(1)", "python"),
    ],
)  # fmt: skip
def test_reply_without_code(reply, language):
    assert code_in(reply, language) is None


@pytest.mark.parametrize(
    ("code", "language"),
    [
        (NEW, "python"),
        ("const half = (x) => x / 2;", "javascript"),
        ("export const half = (x: number) => x / 2;", "typescript"),
        ("func half(x int) int { return x / 2 }", "go"),
        ("function half($x) { return $x / 2; }", "php"),
        ("def half(x) = x / 2", "ruby"),
        ("int half(int x) { return x / 2; }", "cpp"),
    ],
)  # fmt: skip
def test_code_alone_is_a_reply(code, language):
    assert code_in(code, language) == code


def test_a_program_may_do_without_definitions():
    assert code_in("print(2 * int(input()))", is_program=True) == "print(2 * int(input()))"
    assert code_in("None", is_program=True) is None


@pytest.mark.parametrize(
    "reply",
    [
        "x" * 50_000_000,
        "```python\nx=1\n```\n" * 230_000,
        "".join(f"```python\ndef f{n}(): pass\n```\n" for n in range(100_000)),
        "> " * 1_900_000,
        "- " * 1_900_000 + "```",
        "<think>\n" * 400_000,
        "</think>\n" * 400_000,
        " " * 3_900_000,
    ],
    ids=["long", "fences", "names", "quotes", "lists", "thoughts", "ends", "blanks"],
)  # fmt: skip
@pytest.mark.slow
def test_hostile_replies_take_linear_time(reply):
    started = time.process_time()
    code_of_reply(reply, "python", source=OLD)
    assert time.process_time() - started < 20  # a quadratic search takes hours


@pytest.mark.slow
@pytest.mark.parametrize("line", ["x = ({} " * 30, "Is x = {} (the end) right", "(" * 5000])
@pytest.mark.parametrize("is_program", [True, False])
def test_search_for_runs_that_parse_ends(line, is_program):
    """Lines with open brackets are slow to parse; the search gives up before all runs of lines are parsed."""
    reply = "\n".join(line.replace("{}", str(number)) for number in range(199))
    assert code_in(reply, "cpp", is_program=is_program) is None
