"""The templates, and the messages of each round of a strategy."""

import os
import re
from pathlib import Path

import pytest

from simllm.errors import InputError
from simllm.execution.program_verdicts import JudgeTest, ProgramFiles
from simllm.llm.reply import Reply
from simllm.llm.template_process import fence_for
from simllm.repair.conversation import Conversation
from simllm.repair.items import RepairItem
from simllm.repair.judges import Judged, ProgramJudge
from simllm.repair.results import TestResult
from simllm.repair.strategies import load_prompts, load_strategy

PARTS = {
    "description": "DESCRIPTION",
    "file names": "prog.in",
    "time limit": "Time limit",
    "memory limit": "Memory limit",
    "incorrect code": "INCORRECT",
    "role": "You are",
    "guidance": "GUIDANCE",
    "question": "Can you repair",
    "solution": "SOLUTION",
    "still wrong": "is still wrong",
    "compile log": "COMPILE LOG",
    **{f"input {number}": f"INPUT {number}" for number in (1, 2, 3)},
    **{f"expected output {number}": f"OUTPUT {number}" for number in (1, 2, 3)},
    "reply": "REPLY",
}
FAILED = {"WA": (2, 3), "WA1": (1,), "AC": ()}
ITEM = RepairItem(
    "a", "INCORRECT", "cpp", "DESCRIPTION",
    tuple(JudgeTest(f"INPUT {number}\n", f"OUTPUT {number}\n") for number in (1, 2, 3)),
    "FIX", "GUIDANCE", "SOLUTION", 1.0, 64,
)  # fmt: skip


class ScriptedJudge(ProgramJudge):
    """Stand-in for a judge: the first reply gets the first of the given verdicts, and so on.

    The incorrect program that the model has to repair always fails tests 2 and 3.
    """

    def __init__(self, verdicts, shows_output=False):
        self.verdicts, self._shows_output = list(verdicts), shows_output

    def judge_reply(self, item, reply):
        return self.judged(self.verdicts.pop(0))

    def judge_code(self, item):
        return self.judged("WA")

    def judged(self, verdict):
        if verdict == "CE":
            return Judged("", False, "CE", (), "COMPILE LOG")
        if verdict == "NC":
            return Judged(None, False, "NC")
        tests = tuple(TestResult("WA" if n in FAILED[verdict] else "AC", f"ACTUAL {n}") for n in (1, 2, 3))
        return Judged("", verdict == "AC", verdict, tests)


def parts_of(message):
    """Return the role of a message and the prompt parts in it, such as "user: solution, question"."""
    text = message["content"]
    found = sorted((text.index(mark), part) for part, mark in PARTS.items() if mark in text)
    return f"{message['role']}: " + ", ".join(part for _, part in found)


def requests_of(strategy, verdicts, parts=(), item=ITEM, **options):
    """Make an attempt whose replies get these verdicts; return the messages of each request to the model."""
    requests, prompts = [], load_prompts()
    rounds = load_strategy(prompts, strategy, parts, options.pop("rounds", None))

    def ask(question):
        requests.append(question.prompt)
        return Reply("REPLY")

    Conversation(rounds, prompts, ask, ScriptedJudge(verdicts, **options)).hold(item, 1)
    return requests


def test_sessions_of_the_reference_vectors(vectors):
    sessions = vectors("sessions")["sessions"]
    assert len(sessions) == 13
    for session in sessions:
        item = ITEM
        if "files" in session:
            item = RepairItem(**vars(ITEM) | {"files": ProgramFiles("prog.in", "prog.out")})
        verdicts = session.get("verdicts", ["WA"])
        requests = requests_of(session["strategy"], verdicts, session.get("with", ()), item)
        assert [[parts_of(one) for one in request] for request in requests] == session["requests"], session


def test_multi_regenerate_begins_anew_with_one_part_each():
    requests = requests_of("multi-regenerate", ["WA1"] * 3)
    before = "user: description, time limit, memory limit, incorrect code, "
    tests = "input 2, expected output 2, input 3, expected output 3, "
    assert [[parts_of(one) for one in request] for request in requests] == [
        [before + "role, guidance, question"],
        [before + "solution, role, question"],
        [before + tests + "role, question"],
    ]


def test_rounds_above_three_repeat_the_third():
    requests = requests_of("cref", ["WA", "WA", "WA1", "CE", "AC"], rounds=9)
    assert len(requests) == 5
    assert parts_of(requests[3][-1]) == "user: still wrong, input 1, expected output 1, role, question"
    assert parts_of(requests[4][-1]) == "user: still wrong, compile log, role, question"


def test_prompts_of_the_paper_differ_in_role_and_request_alone():
    for strategy in ("single", "multi-regenerate", "cref"):
        ours = texts_of(load_prompts(), strategy)
        published = texts_of(load_prompts(Path("cref-paper")), strategy)
        assert len(ours) == len(published) == {"single": 1}.get(strategy, 3)
        for text, other in zip(ours, published, strict=True):
            text = re.sub("You are an expert .*", "You work as a software developer.", text)
            text = re.sub("Can you repair the program with .*block.", "Please correct the program.", text)
            assert text == other
            assert "few" not in other


def texts_of(prompts, strategy, verdicts=("WA",) * 9, rounds=None):
    """Make an attempt; return the last text of each request."""
    texts = []
    ask = lambda question: texts.append(question.prompt[-1]["content"]) or Reply("REPLY")  # noqa: E731
    found = load_strategy(prompts, strategy, (), rounds)
    Conversation(found, prompts, ask, ScriptedJudge(verdicts)).hold(ITEM, 1)
    return texts


def test_chatrepair_tells_the_first_failure_with_its_output_and_begins_anew():
    verdicts = ["WA", "WA1", "CE", "WA"]
    first, same, other, anew = texts_of(load_prompts(), "chatrepair", verdicts, 4)
    assert anew == first
    assert all(part in first for part in ("DESCRIPTION", "INCORRECT", "INPUT 2", "OUTPUT 2", "ACTUAL 2"))
    assert not any(part in first for part in ("INPUT 3", "GUIDANCE", "SOLUTION", "FIX"))
    assert "fails the first test in the same way as the original program" in same
    assert "INPUT" not in same
    assert all(part in other for part in ("INPUT 1", "OUTPUT 1", "ACTUAL 1"))


def test_chatrepair_tells_compile_errors_and_missing_programs():
    texts = texts_of(load_prompts(), "chatrepair", ["CE", "NC", "NC"])
    assert "does not compile" in texts[1]
    assert "COMPILE LOG" in texts[1]
    assert "Your last reply holds no program." in texts[2]


def test_a_part_that_an_item_lacks_is_left_out_and_its_round_skipped():
    bare = RepairItem(**vars(ITEM) | dict.fromkeys(("guidance", "solution", "time", "memory")))
    requests = requests_of("cref", ["WA", "WA"], item=bare)
    assert [parts_of(request[-1]) for request in requests] == [
        "user: description, incorrect code, role, question",
        "user: still wrong, input 2, expected output 2, input 3, expected output 3, role, question",
    ]
    prompts = load_prompts()
    conversation = Conversation(
        load_strategy(prompts, "cref"), prompts, lambda *_: Reply("REPLY"), ScriptedJudge(["WA", "WA"])
    )
    result = conversation.hold(bare, 1)
    assert result.skipped == (2,)
    assert [one.round for one in result.rounds] == [1, 3]


def test_actual_output_is_shown_on_request():
    assert "ACTUAL" not in requests_of("cref", ["WA"] * 3)[2][-1]["content"]
    assert "ACTUAL 2" in requests_of("cref", ["WA"] * 3, shows_output=True)[2][-1]["content"]


def test_no_message_has_the_fix():
    for strategy in ("single", "multi-regenerate", "cref"):
        for request in requests_of(strategy, ["WA"] * 3):
            assert "FIX" not in str(request)


def test_fences_are_longer_than_those_in_the_text():
    assert fence_for("x") == "```"
    assert fence_for("a ````\n") == "`````"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("request.j2", "{{ fix }}", "request.j2: 'fix' is undefined; known: item, guidance, solution"),
        ("request.j2", "a\n{% if %}", "request.j2, line 2: "),
        ("request.j2", "{{ item.reference }}", "request.j2: 'dict object' has no attribute 'reference'"),
        ("request.j2", "{{ item.code + 1 }}", "request.j2: can only concatenate str"),
        ("strategies.json", "{", "strategies.json: not JSON (Expecting property name"),
        ("strategies.json", '{"programs": {"a": [{"messages": ["b.j2"]}]}}', "there is no template b.j2"),
        (
            "strategies.json",
            '{"programs": {"a": [{"message": []}]}}',
            "a, round 1: unknown key message; missing key messages",
        ),
        (
            "strategies.json",
            '{"programs": {"a": [{"messages": "b.j2"}]}}',
            "messages must be a list, not 'b.j2'",
        ),
        ("strategies.json", '{"programs": {"a": [{"messages": [1]}]}}', "messages[0] must be of type str"),
        ("strategies.json", '{"programs": {"a": ["b.j2"]}}', "round 1: expected a JSON object with messages"),
        ("strategies.json", '{"programs": {"a": 1}}', "programs, a: expected a list of at most 1,000 rounds"),
        ("strategies.json", '{"programs": []}', "strategies.json, programs: expected a JSON object"),
        ("strategies.json", "[]", "strategies.json: expected a JSON object"),
        (
            "strategies.json",
            '{"programs": {"a": [{"messages": ["strategies.json"]}]}}',
            "there is no template",
        ),
    ],
)
def test_wrong_prompts(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        requests_with(load_prompts(tmp_path))


def requests_with(prompts):
    rounds = load_strategy(prompts, "cref")
    requests = []
    ask = lambda question: requests.append(question.prompt) or Reply("REPLY")  # noqa: E731
    Conversation(rounds, prompts, ask, ScriptedJudge(["AC"])).hold(ITEM, 1)
    return requests


def test_own_prompts_replace_the_included_ones(tmp_path):
    (tmp_path / "request.j2").write_text("Mend {{ item.code }} in {{ names[item.language] }}.")
    assert requests_with(load_prompts(tmp_path)) == [[{"role": "user", "content": "Mend INCORRECT in C++."}]]


def test_an_own_part_replaces_the_included_part_of_all_messages(tmp_path):
    (tmp_path / "tutor_hint.j2").write_text("{% macro tutor_hint(text) %}Hint: {{ text }}{% endmacro %}")
    [[message]] = requests_with(load_prompts(tmp_path))
    [[included]] = requests_with(load_prompts())
    changed = included["content"].replace("A tutor gives this hint:\n\nGUIDANCE", "Hint: GUIDANCE")
    assert message["content"] == changed != included["content"]


def test_a_folder_without_prompts_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no template"):
        load_prompts(tmp_path)
    with pytest.raises(InputError, match="is no folder with prompts"):
        load_prompts(tmp_path / "none")


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_template_without_an_end_is_refused(tmp_path, kind):
    if kind == "pipe":
        os.mkfifo(tmp_path / "request.j2")
    else:
        (tmp_path / "request.j2").symlink_to("/dev/zero")
    with pytest.raises(InputError, match=r"request\.j2: is no file; expected a template"):
        load_prompts(tmp_path)


def test_template_that_nothing_uses_is_refused(tmp_path):
    (tmp_path / "hint.j2").write_text("Hint: {{ guidance }}")
    with pytest.raises(InputError, match=r"hint\.j2: no other file uses it; .*tutor_hint\.j2"):
        load_prompts(tmp_path)
    (tmp_path / "request.j2").write_text('{% include "hint.j2" %}')
    assert requests_with(load_prompts(tmp_path)) == [[{"role": "user", "content": "Hint: GUIDANCE"}]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ cycler.__init__.__globals__.os.popen('touch RAN').read() }}", "templates cannot use"),
        ("{{ ''['__class__'].mro() }}", "templates cannot use '__class__'"),
        ("{{ item|attr('__class__') }}", "templates cannot use '__class__'"),
        ("{{ item|attr('__cla' ~ 'ss__') }}", "access to attribute '__class__' of 'dict' object is unsafe"),
        ("{{ item['_' ~ '_class__'].mro }}", "access to attribute '__class__' of 'dict' object is unsafe"),
        ("{{ '{0.__class__}'.format(item) }}", "access to attribute '__class__' of 'dict' object is unsafe"),
        ("{% set x = item.update(code='a') %}", "access to attribute 'update' of 'dict' object is unsafe"),
        ("{{ lipsum(100000) }}", "'lipsum' is undefined"),
        ("{{ range(10**9) }}", "Range too big"),
        ("{{ 'x' * 10**10 }}", "MemoryError"),
        ("{{ 'x'.ljust(10**11) }}", "MemoryError"),
        ("{{ 'x' * 9000000 }}", "more than 8,000,000 characters"),
        ("{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "maximum recursion depth"),
        ("{% set x = 'xx' %}" + "{% set x = x ~ x ~ x %}" * 40, "MemoryError"),
    ],
)  # fmt: skip
def test_templates_that_reach_for_more_are_refused(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "request.j2").write_text(text)
    with pytest.raises(InputError) as caught:
        requests_with(load_prompts(tmp_path))
    assert message in str(caught.value)
    assert "request.j2" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "RAN").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{{ loop.cycle(1) }}{% endfor %}{% endfor %}",
        "{{ 9 ** (9 ** 9) }}",
    ],
)
def test_templates_without_an_end_are_ended(tmp_path, text):
    (tmp_path / "request.j2").write_text(text)
    with pytest.raises(InputError, match="rendering takes more than 10 seconds, or too much memory"):
        requests_with(load_prompts(tmp_path))
    (tmp_path / "request.j2").write_text("Mend it.")
    assert requests_with(load_prompts(tmp_path)) == [[{"role": "user", "content": "Mend it."}]]
