"""Runs of repair: results, resuming, replays and failures."""

import json
import re
import shutil
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit

import pytest

from simllm import repair
from simllm.errors import InputError
from simllm.repair.experiment import RESULTS, SUMMARY
from simllm.repair.items import drop_duplicates, read_items
from simllm.repair.results import read_results
from simllm.repair.strategies import PROMPT_SETS
from tests.chat_server import chat_server
from tests.repair.programs import ITEM, RIGHT, WRONG, by_content, fenced, items

pytestmark = pytest.mark.slow  # many processes; the quick lane runs the documented pages


@pytest.fixture
def run(server, tmp_path, sandbox):
    """Return a function that runs repair against the local endpoint."""

    def call(file, name="run", **options):
        options = {"model": "M", "base_url": f"{server.url}/v1", "retries": 0} | options
        return repair.run(file, tmp_path / name, **options)

    return call


@pytest.fixture
def replay(tmp_path):
    """Return a function that replays the run in the folder "run", and returns the new folder."""

    def call(file, name="again", **options):
        repair.run(file, tmp_path / name, replay=tmp_path / "run", **options)
        return tmp_path / name

    return call


@pytest.fixture(scope="module")
def made_once(sandbox, tmp_path_factory):
    """Run one attempt at one item; return the folder with the items and the folder "run"."""
    folder = tmp_path_factory.mktemp("made-once")
    (folder / "items.jsonl").write_text(json.dumps(ITEM) + "\n")
    with pytest.MonkeyPatch.context() as patch, chat_server() as server:
        patch.setenv("OPENAI_API_KEY", "sk-canary-123456")
        server.whole = True
        server.reply = lambda body: fenced(RIGHT)
        options = {"model": "M", "base_url": f"{server.url}/v1", "retries": 0, "attempts": 1}
        repair.run(folder / "items.jsonl", folder / "run", **options)
        assert len(server.requests) == 1
    return folder


@pytest.fixture
def finished(made_once, tmp_path):
    """Copy the finished run into the folder of the test; return the file of its items."""
    shutil.copytree(made_once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "items.jsonl"


def read(folder):
    return {name: (folder / name).read_bytes() for name in (RESULTS, SUMMARY)}


def test_a_run_and_its_replays(run, replay, server, write_items, tmp_path):
    server.reply = by_content
    file = write_items(*items(4))
    summary = run(file, attempts=2, parallel=4)
    assert summary["complete"]
    assert 0 < summary["figures"]["accepted"] < 8
    asked = len(server.requests)
    assert asked == summary["figures"]["requests"]
    for parallel in (1, 5):
        assert read(replay(file, f"again {parallel}", parallel=parallel)) == read(tmp_path / "run")
    run(file, attempts=2)
    assert len(server.requests) == asked  # nothing on record is asked for again
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"canary" not in path.read_bytes(), path


def test_lost_replies_leave_attempts_open(run, server, write_items, tmp_path):
    file = write_items(*items(3))
    server.reply = lambda body: None if "integer, 1." in body["messages"][0]["content"] else fenced(RIGHT)
    summary = run(file, attempts=1)
    assert (summary["complete"], summary["open attempts"]) == (False, 1)
    assert summary["first open attempt"].startswith("item item 1, attempt 1: ")
    assert summary["figures"]["AVG"] == 1
    server.requests.clear()
    server.reply = lambda body: fenced(RIGHT)
    assert run(file, attempts=1)["complete"]
    assert len(server.requests) == 1


def test_context_overflow_is_not_accepted(run, server, write_items, tmp_path):
    body = json.dumps({"error": {"message": "too long", "code": "context_length_exceeded"}}).encode()
    server.reply = lambda request: (400, {}, body) if len(request["messages"]) > 1 else fenced(WRONG)
    summary = run(write_items(ITEM), attempts=1)
    assert summary["complete"]
    assert summary["figures"]["verdicts"]["context overflow"] == {"final replies": 1, "all replies": 1}
    assert len(server.requests) == 2
    run(write_items(ITEM), attempts=1)
    assert len(server.requests) == 2


def test_a_half_written_record_is_asked_for_again(run, server, write_items, tmp_path):
    server.reply = by_content
    file = write_items(*items(2))
    run(file, attempts=1)
    before, asked = read(tmp_path / "run"), len(server.requests)
    records = tmp_path / "run" / "replies.jsonl"
    records.write_bytes(records.read_bytes()[:-20])
    run(file, attempts=1)
    assert len(server.requests) == asked + 1
    assert read(tmp_path / "run") == before


def test_a_damaged_record_is_an_error(run, finished, tmp_path):
    records = tmp_path / "run" / "replies.jsonl"
    records.write_text("{}\n" + records.read_text())
    with pytest.raises(InputError, match=re.escape(f"{records}, line 1: is no recorded reply")):
        run(finished, attempts=1)


def test_a_missing_reply_of_a_replay(run, replay, server, write_items, tmp_path):
    server.reply = lambda body: fenced(WRONG)
    file = write_items(ITEM)
    run(file, attempts=2)
    records = tmp_path / "run" / "replies.jsonl"
    lines = records.read_text().splitlines(keepends=True)
    records.write_text("".join(line for line in lines if '"sample":2,"round":3' not in line))
    with pytest.raises(
        InputError, match=r"has no reply to this request \(item next, sample 2, round 3\); other"
    ):
        replay(file)


NO_ENDPOINT = {"model": None, "base_url": None, "retries": None}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": None}, "expected model NAME"),
        ({"model": "N"}, r"holds a run with other settings \(model\); name another folder"),
        ({"attempts": 2}, r"holds a run with other settings \(attempts\)"),
        ({"attempts": 0}, "^attempts 0: expected a whole number from 1"),
        ({"parallel": 0}, "^parallel 0: expected a whole number from 1"),
        ({"retries": -1}, "^retries -1: expected a whole number from 0"),
        ({"rate": 0}, "^rate 0: expected a positive number"),
        ({"max_cost": 1}, "^max_cost needs prices FILE"),
        ({"judge": "jaccard"}, "^judge METRIC and bar X go together"),
        ({"judge": "jaccard", "bar": float("nan")}, "^bar nan: expected a finite number"),
        ({"parts": "hints"}, "^parts hints: expected any of guidance, solution, tests"),
        ({"judge": "no-such", "bar": 1.0}, "line 1: missing key reference"),
        ({"compare": "loose"}, "comparison 'loose': expected one of"),
        ({"prompts": "none"}, "none: is no folder with prompts, and no set of them: cref-paper"),
        (NO_ENDPOINT | {"replay": "none"}, "none: has no settings.json; expected the folder of a run"),
        (NO_ENDPOINT | {"replay": "run", "model": "M"}, "^model goes with an endpoint; replay uses"),
        (NO_ENDPOINT | {"replay": "run", "base_url": "http://localhost"}, "^base_url goes with an endpoint"),
        (NO_ENDPOINT | {"replay": "run", "rate": 60}, "^rate goes with an endpoint"),
        (NO_ENDPOINT | {"replay": "run", "retries": 5}, "^retries goes with an endpoint"),
        (NO_ENDPOINT | {"replay": "run", "max_cost": 1}, "^max_cost goes with an endpoint"),
    ],
)
def test_wrong_options(run, server, finished, options, message):
    with pytest.raises(InputError, match=message):
        run(finished, **{"attempts": 1} | options)
    assert not server.requests


def test_a_folder_of_something_else_is_refused(run, write_items, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("x")
    with pytest.raises(InputError, match="holds files that simllm did not write"):
        run(write_items(ITEM), "mine")


def test_other_items_are_refused(run, finished, write_items):
    with pytest.raises(InputError, match="holds a run with other items"):
        run(write_items(ITEM | {"guidance": "other"}), attempts=1)


def test_largest_cost(run, server, write_items, tmp_path):
    prices = tmp_path / "prices.json"
    prices.write_text('{"M": {"input": 3, "output": 15}}')
    server.reply = lambda body: fenced(RIGHT)
    summary = run(write_items(*items(5)), attempts=1, prices=prices, max_cost=3e-4)
    assert len(server.requests) == 3  # a request costs 1.35e-4
    assert summary["figures"]["cost"] == pytest.approx(4.05e-4)
    assert summary["open attempts"] == 2
    assert "the largest cost (0.0003) is reached" in summary["first open attempt"]
    server.usage = lambda body: None
    with pytest.raises(InputError, match="max_cost: the endpoint does not report tokens"):
        run(write_items(*items(5)), attempts=1, prices=prices, max_cost=1)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"N": {}}', '{"M": {"input": 1}}', '{"M": {"input": -1, "output": 1}}']
)
def test_wrong_prices(run, write_items, tmp_path, text):
    (tmp_path / "prices.json").write_text(text)
    with pytest.raises(InputError, match=re.escape(str(tmp_path / "prices.json"))):
        run(write_items(ITEM), prices=tmp_path / "prices.json")


def test_a_full_disk(run, server, write_items, tmp_path):
    """The error names the file that cannot be written; the run can be resumed when there is space again."""
    server.reply = by_content
    file = write_items(*items(3))
    run(file, "whole", attempts=1)
    first = RLIMIT_FSIZE, getrlimit(RLIMIT_FSIZE)
    (tmp_path / "run").mkdir()
    try:
        # Above the size of the script that tries out the sandbox, below that of the replies.
        setrlimit(RLIMIT_FSIZE, (16_000, first[1][1]))
        records = tmp_path / "run" / "replies.jsonl"
        with pytest.raises(InputError, match=re.escape(f"{records}: cannot be written (File too large)")):
            run(write_items(*(items(3))), attempts=30)
    finally:
        setrlimit(*first)
    asked = len(server.requests)
    run(file, attempts=30)
    assert len(server.requests) > asked
    assert read_results(tmp_path / "run")


def test_rate(run, server, write_items):
    import time

    server.reply = lambda body: fenced(RIGHT)
    begun = time.monotonic()
    run(write_items(*items(4)), attempts=1, rate=600, parallel=4)
    assert time.monotonic() - begun > 0.3


def test_summaries_of_the_reference_vectors(server, tmp_path, vectors, write_items):
    for number, case in enumerate(vectors("summaries")["cases"]):
        queues = {item["code"]: list(item["replies"]) for item in case["items"]}

        def reply(body, queues=queues):
            text = body["messages"][0]["content"]
            return next(queue for code, queue in queues.items() if code in text).pop(0)

        server.requests.clear()
        server.reply = reply
        keys = ("id", "code", "reference", "guidance")
        file = write_items(*({key: item[key] for key in keys} for item in case["items"]))
        summary = repair.run(
            file, tmp_path / f"run {number}", model="M", base_url=f"{server.url}/v1", attempts=1,
            judge=case["metric"], bar=case["bar"], rounds=case["max rounds"],
        )  # fmt: skip
        found = summary["figures"]
        assert (found["AVG"], found["TOP"]["1"]) == pytest.approx((case["AVG"], case["TOP-1"]))
        assert [row["share by then"] for row in found["rounds"]] == pytest.approx(
            case["share accepted by round"]
        )
        assert found["RPSR"] is None
        assert summary["judge"]["knows the reference"]
        for item, attempt in zip(case["items"], read_results(tmp_path / f"run {number}"), strict=True):
            rounds = [
                {"reply": one.reply, "score": one.score, "accepted": one.accepted} for one in attempt.rounds
            ]
            assert rounds == [one | {"score": pytest.approx(one["score"])} for one in item["rounds"]]
            told = [message["content"] for one in attempt.rounds for message in one.messages]
            assert item["reference"] not in "".join(told)
            for one, text in zip(attempt.rounds, told[1:], strict=False):
                assert f"{one.score:.3f}" in text
                assert item["guidance"] in text


@pytest.mark.parametrize("strategy", ["single", "multi-regenerate", "cref"])
def test_results_of_the_reference_vectors(run, server, tmp_path, vectors, write_items, strategy):
    data = vectors("items")
    expected = data["results"][strategy]
    order = [one for each in expected["attempts"].values() for attempt in each for one in attempt]
    ids = [id_ for id_, each in expected["attempts"].items() for attempt in each for _ in attempt]
    queue = [data["replies"][id_][one["reply"]] for id_, one in zip(ids, order, strict=True)]
    server.reply = lambda body: queue.pop(0)
    (tmp_path / "prices.json").write_text('{"M": {"input": 3, "output": 15}}')
    summary = run(write_items(*data["items"]), strategy=strategy, attempts=3, prices=tmp_path / "prices.json")
    assert not queue
    found = summary["figures"]
    attempts = read_results(tmp_path / "run")
    assert [one.verdict for attempt in attempts for one in attempt.rounds] == [
        one["verdict"] for one in order
    ]
    for id_, one, result in zip(ids, order, (r for a in attempts for r in a.rounds), strict=True):
        assert [test.verdict for test in result.tests] == data["verdicts"][id_][one["reply"]]["tests"]
    assert found["TOP"] == pytest.approx(expected["TOP"])
    assert found["AVG"] == pytest.approx(expected["AVG"])
    for row, wanted in zip(found["rounds"], expected["rounds"], strict=True):
        assert {**row, "attempts": row["reached"]} == pytest.approx(row | wanted)
    assert found["RPSR"] == pytest.approx(expected["RPSR mean over accepted"])
    assert found["RPSR, counted"] == expected["accepted with RPSR"]
    assert found["RPSR published"] == pytest.approx(expected["RPSR published form"])
    for name in ("requests", "prompt tokens", "completion tokens"):
        assert found[name] == expected[name]
    assert found["cost"] == pytest.approx(expected["cost at 3 and 15 a million"])


def test_prompts_are_part_of_the_package():
    folder = Path(repair.__file__).parent / "prompts"
    assert {path.suffix for path in folder.rglob("*.*")} == {".j2", ".json"}
    assert all((folder / name).is_dir() for name in PROMPT_SETS)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("verdicts.jsonl", "1\n", "line 1: expected a JSON object"),
        ("verdicts.jsonl", '{"key": 1}\n', 'expected a text under "key"'),
        ("patches.jsonl", "x\n", "patches.jsonl, line 1: not JSON"),
        ("verdicts.jsonl", "%s", "verdicts.jsonl: the stored verdict on item"),
        ("verdicts.jsonl", '{"verdict": "AC", "tests": [["AC"]], "compile_log": ""}', "a verdict and an"),
        ("verdicts.jsonl", '{"verdict": "OK", "tests": [], "compile_log": ""}', "unknown verdict 'OK'"),
        ("verdicts.jsonl", '{"verdict": "AC", "tests": [["AC", ""]], "compile_log": ""}', "other tests"),
        ("patches.jsonl", '{"edits": 1}', "patches.jsonl: a stored size: missing key nodes"),
        ("patches.jsonl", '{"edits": -1, "nodes": 0, "larger": 0}', "a stored size is negative"),
        ("patches.jsonl", "[1]", "patches.jsonl: a stored size must be a JSON object"),
    ],
)  # fmt: skip
def test_damaged_caches_are_errors(run, replay, finished, tmp_path, name, text, message):
    cache = tmp_path / "run" / name
    keys = [json.loads(line)["key"] for line in cache.read_text().splitlines()]
    if text == "%s" or text[-1] != "\n":
        value = json.loads(text) if text != "%s" else text
        text = "".join(json.dumps({"key": key, "value": value}) + "\n" for key in keys)
    cache.write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        run(finished, attempts=1)
    with pytest.raises(InputError, match=re.escape(message)):
        replay(finished)


def test_a_command_with_a_wrong_model_can_be_corrected(run, server, write_items, tmp_path):
    unknown = json.dumps({"error": {"message": "The model X does not exist"}}).encode()
    server.reply = lambda body: fenced(RIGHT) if body["model"] == "M" else (404, {}, unknown)
    file = write_items(ITEM)
    with pytest.raises(InputError, match="The model X does not exist"):
        run(file, attempts=1, model="X")
    assert run(file, attempts=1)["figures"]["AVG"] == 1
    assert json.loads((tmp_path / "run" / "settings.json").read_text())["model"] == "M"
    with pytest.raises(InputError, match="holds a run with other settings"):  # now it has begun
        run(file, attempts=1, model="X")


def test_a_metric_of_code_is_no_judge(run, replay, server, write_items, tmp_path):
    file = write_items(ITEM)
    with pytest.raises(InputError, match=r"^judge lemod: a metric for code; judge is for summaries"):
        run(file, judge="lemod", bar=0.5)
    assert not (tmp_path / "run").exists()
    assert not server.requests


@pytest.mark.parametrize(
    "options",
    [{"rounds": 10**20}, {"attempts": 10**20}, {"parallel": 10**20}],
    ids=["rounds", "attempts", "parallel"],
)
def test_huge_numbers_are_refused(run, write_items, options):
    with pytest.raises(
        InputError, match=f"^{next(iter(options))} 1000000.*: expected a whole number from 1 to"
    ):
        run(write_items(ITEM), **options)


def test_huge_numbers_in_files_are_refused(run, write_items, tmp_path):
    for name in ("time", "memory"):
        with pytest.raises(InputError, match=rf"items\.jsonl, line 1: .*{name}"):
            run(write_items(ITEM | {name: int("9" * 400)}))
    prices = tmp_path / "prices.json"
    prices.write_text('{"M": {"input": %s, "output": 1}}' % ("9" * 400))
    with pytest.raises(InputError, match=r"prices\.json, M: input must be"):
        run(write_items(ITEM), prices=prices)


def test_a_run_of_somebody_else_runs_nothing_and_reads_no_other_file(replay, finished, tmp_path):
    settings = tmp_path / "run" / "settings.json"
    recorded = json.loads(settings.read_text())
    ran = tmp_path / "RAN"
    command = "{{ cycler.__init__.__globals__.os.system('touch " + str(ran) + "') }}"
    settings.write_text(json.dumps(recorded | {"prompts": recorded["prompts"] | {"request.j2": command}}))
    with pytest.raises(InputError, match=r"settings\.json: request\.j2, line 1: templates cannot use"):
        replay(finished)
    assert not ran.exists()
    assert not (tmp_path / "again").exists()
    settings.write_text(json.dumps(recorded | {"judge": "simllm=elsewhere", "bar": 0.5}))
    with pytest.raises(
        InputError, match="judged by simllm=elsewhere; to read this file or folder, give judge"
    ):
        replay(finished)


@pytest.mark.parametrize(
    ("reply", "warning"),
    [
        ("I am sorry.", "all 3 replies are without code: they count as not accepted"),
        (" ", "all 3 replies are empty: an empty reply has no code"),
        (fenced("print(("), "no reply compiles; does the compiler"),
        (fenced("print(1)\n") + fenced("print(2)\n"), "all 3 replies are ambiguous: several blocks"),
        (None, "no attempt is finished, so that there are no figures"),
    ],
    ids=["prose", "empty", "broken", "ambiguous", "lost"],
)  # fmt: skip
def test_figures_that_mean_little_are_named(run, server, write_items, reply, warning):
    server.reply = lambda body: reply
    summary = run(write_items(ITEM), attempts=1)
    assert any(one.startswith(warning) for one in summary["warnings"]), summary["warnings"]
    named = summary["figures"]["replies"]["ambiguous, named"]
    ambiguous = [f"item {ITEM['id']}, attempt 1, round {n}" for n in (1, 2, 3)]
    assert named == (ambiguous if "ambiguous" in warning else [])


def test_the_program_is_found_in_all_kinds_of_replies(run, server, write_items):
    """An echo, a draft, a near label, a blank before the fence, sentences around a program, a snippet."""
    cpp = (
        '#include <cstdio>\nint main() {\n    int n;\n    scanf("%d", &n);\n    printf("%d\\n", n + 1);\n}\n'
    )
    wrong, draft = cpp.replace("n + 1", "n"), cpp.replace("n + 1", "n - 1").replace("int n;", "int n;\n\n\n")
    text = 'input()\nprint("""a\n b\n  c""")'
    in_cpp = {
        "echo": f"This is wrong:\n```cpp\n{wrong}```\nRight:\n```cpp\n{cpp}```\n",
        "echo after": f"```cpp\n{cpp}```\nIt was:\n```cpp\n{wrong}```\n",
        "draft": f"<think>\nMaybe\n```cpp\n{draft}```\nNo.\n</think>\n```cpp\n{cpp}```\n",
        "near": f"```c\n{cpp}```\nIt prints\n```\n1\n2\n3\n4\n5\n6\n7\n8\n```\n",
        "unfenced": f"Sure! This (n = 1) was one too small:\n\n{cpp}\nIt prints n and one.\nDone\n",
        "line": f'```cpp\n{cpp}```\nI changed this line:\n```cpp\nprintf("%d", n + 1);\n```\n',
    }
    rows = [
        {"id": name, "language": "cpp", "description": f"<{name}>", "code": wrong,
         "tests": [{"input": "1\n", "output": "2\n"}]} for name in in_cpp
    ]  # fmt: skip
    rows.append(
        {"id": "blank", "language": "python", "description": "<blank>", "code": "print('a')",
         "tests": [{"input": "1\n", "output": "a\n b\n  c\n"}]}
    )  # fmt: skip
    replies = in_cpp | {"blank": f"So:\n ```python\n{text}\n ```\n"}
    server.reply = lambda body: next(
        reply for name, reply in replies.items() if f"<{name}>" in body["messages"][0]["content"]
    )
    summary = run(write_items(*rows), attempts=1, strategy="single")
    assert summary["figures"]["AVG"] == 1


CPP = ITEM | {
    "language": "cpp",
    "code": '#include <cstdio>\nint main() { int x; scanf("%d", &x); printf("%d", x); }\n',
}


def test_equal_programs_are_dropped_once_and_named(server, write_items, tmp_path):
    spaced = CPP["code"].replace("int x;", "int  x ;").replace("{ ", "{\n")
    other = CPP["code"].replace('"%d", x', '"%d ", x')  # white space in a literal is another program
    rows = [CPP | {"id": "a"}, CPP | {"id": "b", "code": spaced}, CPP | {"id": "c", "code": other}]
    server.reply = lambda body: "no code"
    found = repair.run(
        write_items(*rows),
        tmp_path / "run",
        model="M",
        base_url=f"{server.url}/v1",
        strategy="single",
        attempts=1,
    )
    assert found["dropped items"] == {"b": "a"}
    assert found["items"] == len(server.requests) == 2
    assert any("1 item dropped" in warning and "b (as a)" in warning for warning in found["warnings"])


def test_python_keeps_its_indentation(write_items):
    codes = ["if 1:\n    a()\n    b()\n", "if 1:\n    a()\nb()\n", "if 1:\n    a()  \n\n    b()\n"]
    rows = [ITEM | {"id": str(n), "code": code} for n, code in enumerate(codes)]
    kept, dropped = drop_duplicates(read_items(write_items(*rows)))
    assert ([item.id for item in kept], dropped) == (["0", "1"], {"2": "0"})


@pytest.mark.parametrize(
    ("language", "code", "other", "are_equal"),
    [
        ("cpp", "int x = a- -b;", "int x = a--b;", False),
        ("cpp", "int x = a / *b;", "int x = a /*b;", False),
        ("cpp", "intx;", "int x;", False),
        ("cpp", "x = = 1;", "x == 1;", False),
        ("cpp", "// a\nb();", "// ab();", False),
        ("cpp", "vector<vector<int> > v;\nif (a < -1)", "vector<vector<int>>v;if(a<-1)", True),
        ("cpp", "int  x = *p ;  // a\ny();", "int\nx=*p;// a\n  y();", True),
        ("python", "print('a\tb')", "print('a       b')", False),
        ("python", "s = '''a\n\nb'''", "s = '''a\nb'''", False),
        ("python", "x=[1,2]\nprint( x )", "x = [ 1,\n  2 ]\n\nprint(x)\n", True),
        ("python", "if x:\n\ty()", "if x:\n    y()\n", True),
        ("python", "print('a\n\n", "print('a\n", True),  # no tokens
        ("python", "if x:\n    a(\n", "if x:\na(\n", False),
    ],
)
def test_white_space_between_tokens_alone_makes_no_other_program(
    write_items, language, code, other, are_equal
):
    rows = [ITEM | {"id": "a", "language": language, "code": code}]
    rows += [ITEM | {"id": "b", "language": language, "code": other}]
    _, dropped = drop_duplicates(read_items(write_items(*rows)))
    assert dropped == ({"b": "a"} if are_equal else {})


def test_figures_by_tier_are_in_natural_order(server, write_items, tmp_path):
    rows = [row | {"tier": tier} for row, tier in zip(items(4), ["T10", None, "T9", "T9"], strict=True)]
    server.reply = lambda body: fenced(WRONG)
    options = {"model": "M", "base_url": f"{server.url}/v1", "strategy": "single", "attempts": 1}
    found = repair.run(write_items(*rows), tmp_path / "run", **options)
    assert {name: one["items"] for name, one in found["tiers"].items()} == {"T9": 2, "T10": 1, "(no tier)": 1}
    assert "1 of 4 items have no tier" in found["warnings"]


def test_patches_on_the_trees_of_libclang(server, write_items, tmp_path):
    pytest.importorskip("clang")
    fix = CPP["code"].replace(", x);", ", x + 1);")
    file = write_items(CPP | {"fix": fix})
    server.reply = lambda body: f"```cpp\n{fix}```"
    options = {"model": "M", "base_url": f"{server.url}/v1", "strategy": "single", "attempts": 1}
    found = repair.run(file, tmp_path / "run", **options, trees="libclang")
    assert found["figures"]["RPSR"] == 1
    [attempt] = read_results(tmp_path / "run")
    default = repair.run(file, tmp_path / "default", replay=tmp_path / "run", trees="tree-sitter")
    assert default["figures"]["RPSR"] == 1
    assert read_results(tmp_path / "default")[0].patch != attempt.patch


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trees": "libclang"}, "trees libclang measures C\\+\\+ alone; item next has the language python"),
        ({"trees": "clang"}, "trees 'clang': expected tree-sitter or libclang|trees clang: expected"),
        ({"prompts": "cref-papers"}, "cref-papers: is no folder with prompts"),
        ({"strategy": "chatrepair", "parts": "tests"}, "goes with the strategy single"),
    ],
)
def test_wrong_options_of_the_study(write_items, tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        repair.run(
            write_items(ITEM), tmp_path / "run", model="M", base_url="http://127.0.0.1:9/v1", **options
        )
    assert not (tmp_path / "run").exists()


def test_set_of_prompts_is_part_of_the_run(server, write_items, tmp_path, monkeypatch):
    server.reply = lambda body: fenced(RIGHT)
    options = {"model": "M", "base_url": f"{server.url}/v1", "attempts": 1}
    file = write_items(ITEM)
    found = repair.run(file, tmp_path / "run", **options, prompts="cref-paper")
    assert found["run"] == "M, cref, prompts cref-paper"
    again = repair.run(file, tmp_path / "again", replay=tmp_path / "run")
    assert again["run"] == found["run"]
    with pytest.raises(InputError, match="has no reply to this request"):
        repair.run(file, tmp_path / "other", replay=tmp_path / "run", prompts=_included(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cref-paper").mkdir()
    with pytest.raises(InputError, match="a set of simllm, and a folder here"):
        repair.run(file, tmp_path / "third", **options, prompts="cref-paper")


def _included(folder):
    """Copy one included template, so that a folder has the included prompts."""
    (folder / "own").mkdir()
    name = "role_and_question.j2"
    text = (Path(repair.__file__).parent / "prompts" / name).read_text()
    (folder / "own" / name).write_text(text)
    return folder / "own"
