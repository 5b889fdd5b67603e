"""A language model as a metric: scores in answers, replies on disk, pairs of systems, cascade and bias."""

import json
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm.analysis.judge import judge_bias
from simllm.errors import InputError
from simllm.metrics import Example, load
from simllm.metrics.judge.scale import Scale
from tests.chat_server import chat_server
from tests.command import run

KEY = "sk-canary-123456"
PAIRS = [
    ("adds two lists", "combines 2 arrays", 4),
    ("opens a file", "closes the file", 1),
    ("sorts the users by name", "orders users by their names", 5),
    ("returns the size", "gets the length of the queue", 3),
    ("draws a circle", "paints a round shape", 4),
    ("deletes the row", "inserts a row", 2),
    ("parses the date", "reads a date from the text", 5),
    ("starts the server", "launches the http server", 4),
]


@pytest.fixture
def server(monkeypatch):
    """Run an endpoint that rates each pair as `PAIRS` says."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with chat_server() as server:
        server.reply = rate
        yield server


def rate(prompt):
    return next(f"Score: {rating}" for _, candidate, rating in PAIRS if f"\n{candidate}\n" in prompt)


@pytest.fixture
def judge(server, tmp_path):
    """Return a function that writes a judge's file, and returns its name as a metric."""

    def write(name="judge.toml", text="", **keys):
        keys = {"base_url": server.url, "model": "M", "retries": 0, "cache": "replies.jsonl", **keys}
        lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items() if value is not None]
        (tmp_path / name).write_text("\n".join([*lines, text]))
        return f"judge={tmp_path / name}"

    return write


@pytest.fixture
def pairs(tmp_path):
    """Write pairs with ratings, systems and code."""
    rows = [
        {
            "reference": a,
            "candidate": b,
            "rating": rating,
            "system": "ab"[n % 2],
            "source": f"def f{n}(): ...",
        }
        for n, (a, b, rating) in enumerate(PAIRS)
    ]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def examples():
    return [Example(candidate, reference) for reference, candidate, _ in PAIRS]


FIVE = Scale(1, 5)


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("4", 4), ("4/5", 4), ("4 out of 5", 4), ("**Score:** 4/5", 4), ("Score: 4 out of 5.", 4),
        ("4.5", 4.5),
        ("4,5", 4.5), ("Score (1-5): 4", 4), ('{"score": 4, "reason": "has 2 errors"}', 4), (r"\boxed{4}", 4),
        ("<think>Score: 2</think>Score: 3", 3), ("Score: 2\n\nWait. Score: 3", 3), ("Score:\n4", 4),
        ("On a scale of 1 to 5, I would give this a 4.", 4), ("4\n\nThe candidate is good.", 4),
        ("I'd rate it 4 because it has 2 errors", 4), ("1. It omits x.\n2. It omits y.\nScore: 3", 3),
        ("Scale: 1 (the worst) to 5 (the best). Score: 2", 2), ("__4__", 4), ("Final score: 4 points", 4),
        ("Score: 4\nExplanation: the score is based on 3 facts.", 4),
        ("<score>4</score>", 4), ("<reason>2 facts</reason>\n<rating> 4 </rating>", 4), ("Score: <4>", 4),
        ("I'd rate this 4/5 overall.", 4), ("4/5 is my rating.", 4),
        # No score, or none on this scale: a number in the text must not become one.
        ("5.5", None), ("Score: 5.5", None), ("Score: 0", None), ("8/10", None), ("Score: 8/10", None),
        ("Score: 80%", None), ("Score: -4", None), ("3-4", None), ("3 or 4", None), ("between 3 and 4", None),
        ("The function adds 2 numbers.", None), ("1. It omits x.\n2. It omits y.", None), ("4\n5", None),
        ("<think>Score: 5", None), ("", None), ("Score: N/A", None), ("1,000", None), ("2024-11-28", None),
        ("2 of the 5 facts are missing.", None), ("The score is 2 points lower than a 5.", None),
        ("The candidate gives 2 of 5 facts.", None), ("It misses 3/5 facts.", None), ("<note>3</note>", None),
        ("Candidate 2 is better", None), ("Score: 1 (worst) to 5 (best)", None),
    ],
)  # fmt: skip
def test_score_in_an_answer(answer, score):
    assert FIVE.read(answer) == score


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("85%", 85), ("Score: 85%", 85), ("85/100", 85), ("It gives 60% of the facts. Score: 40", 40),
        ("It gives 60% of the facts.", None), ("Score: 4/5", None), ("120%", None),
    ],
)  # fmt: skip
def test_percent_is_a_score_on_a_scale_to_100(answer, score):
    assert Scale(0, 100).read(answer) == score


def test_place_of_a_score_in_tags_stays():
    answer = "<b>**Yes**</b> <score>4</score>"
    assert Scale(1.0, 5.0).find_step(answer, "12345") == ("4", answer.index("4"))


FORMS = ["{}", "{}/{high}", "{} out of {high}", "Score: {}", "**Score: {}/{high}**", '{{"score": {}}}']
FORMS += ["On the scale {low} to {high}, the candidate gets a score of {}.", "<think>{high}</think>\n{}"]
FORMS += ["Score: {}\n\nIt has 3 of the 4 facts.", "The reference has 2 parts.\n\nRating: {}"]


@given(st.integers(-3, 5), st.integers(1, 15), st.data())
def test_a_score_is_read_in_every_form(low, width, data):
    scale = Scale(low, low + width)
    score = data.draw(st.integers(low, low + width))
    form = data.draw(st.sampled_from(FORMS))
    assert scale.read(form.format(score, low=low, high=low + width)) == score


@given(st.text(), st.sampled_from(["", "Score: ", "\n", "4/5 "]), st.text())
def test_what_is_read_is_on_the_scale(before, middle, after):
    value = FIVE.read(before + middle + after)
    assert value is None or 1 <= value <= 5


@pytest.mark.parametrize("piece", ["4", "score ", "1 ", " ", "(*", "score: ", "give ", "1-", "4/", "a."])
def test_endless_answers_are_read_fast(piece):
    begun = time.process_time()
    FIVE.read(piece * (200_000 // len(piece)))
    assert time.process_time() - begun < 3


def test_labels_have_their_places_as_scores():
    scale = Scale(1, 5, ("very bad", "bad", "good", "very good"))
    assert (scale.low, scale.high) == (1, 4)
    found = [scale.read(text) for text in ("Very good", "Answer: good", "very bad.", "fine")]
    assert found == [4, 3, 1, None]


def test_scores_are_the_models_and_are_asked_once(server, judge, tmp_path):
    name = judge(text="price = {input = 1, output = 2}")
    metric = load(name)
    scores = metric.score(examples() + examples()[:2])
    assert scores.values.tolist() == [rating for *_, rating in PAIRS + PAIRS[:2]]
    assert scores.mean == np.mean(scores.values)
    assert len(server.requests) == len(PAIRS)  # equal pairs share a reply
    assert scores.facts["requests"] == scores.facts["requests sent now"] == len(PAIRS)
    assert scores.facts["cost"] == pytest.approx(len(PAIRS) * (10 * 1 + 7 * 2) / 1e6)
    again = load(name).score(examples())
    assert again.values.tolist() == [rating for *_, rating in PAIRS]
    assert len(server.requests) == len(PAIRS)
    assert again.facts["requests sent now"] == 0
    assert not any(KEY.encode() in file.read_bytes() for file in tmp_path.iterdir())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["judge.toml", "replies.jsonl"]


def test_recorded_replies_need_no_network(server, judge):
    load(judge()).score(examples())
    name = judge(base_url="http://127.0.0.1:9/v1")
    assert load(name).score(examples()).values.tolist() == [rating for *_, rating in PAIRS]
    with pytest.raises(InputError, match="no server can be reached"):
        load(name).score([Example("never", "asked")])


def test_default_cache_is_in_the_users_cache_folder(server, judge, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    name = judge(cache=None)
    load(name).score(examples())
    load(name).score(examples())
    assert len(server.requests) == len(PAIRS)
    assert len(list((tmp_path / "home" / "simllm" / "judges").glob("*.jsonl"))) == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["home", "judge.toml"]


def test_more_samples_ask_for_those_that_are_missing(server, judge, tmp_path):
    replies = iter(["Score: 2", "Score: 4", "no idea"])
    server.reply = lambda prompt: next(replies)
    pair = [Example("a b", "c d")]
    assert load(judge(cache="r.jsonl")).score(pair).values.tolist() == [2]
    with pytest.warns(UserWarning, match='1 of 3 replies are without a score, such as "no idea"'):
        scores = load(judge(cache="r.jsonl", samples=3)).score(pair)
    assert scores.values.tolist() == [3]  # the mean of the readable ones
    assert len(server.requests) == 3


def test_signature_has_all_that_changes_a_score(judge, tmp_path):
    (tmp_path / "own.j2").write_text("{{ candidate }} {{ reference }}")
    variants = [
        {}, {"model": "N"}, {"temperature": 0}, {"seed": 3}, {"samples": 2}, {"scale": [0, 10]},
        {"labels": ["bad", "good"]}, {"expectation": True}, {"template": "own.j2"}, {"api": "completions"},
        {"extra": {}},
    ]  # fmt: skip
    signatures = [load(judge(**{k: v for k, v in one.items() if k != "extra"})).signature for one in variants]
    assert len(set(signatures)) == len(variants) - 1
    assert "model:M|template:adequacy:" in signatures[0]
    (tmp_path / "own.j2").write_text("{{ candidate }} and {{ reference }}")
    assert load(judge(template="own.j2")).signature not in signatures
    # Limits and the address change no score.
    assert load(judge(parallel=1, retries=9, base_url="http://u:secret@h/v1")).signature == signatures[0]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"scale": [5, 1]}, "judge.toml: scale 5 to 1: expected the worst score first"),
        ({"scale": [3, 3]}, "both ends are 3"),
        ({"scale": [1, 2, 3]}, "expected two numbers"),
        ({"labels": ["good"]}, "two labels or more"),
        ({"labels": ["good", "Good"]}, "judge.toml: labels: a label stands twice"),
        ({"max_cost": 1}, "judge.toml: max_cost needs price\n"),
        ({"template": ""}, "judge.toml: template: expected a name"),
        ({"cache": ""}, "judge.toml: cache: expected a name"),
        ({"template": "lost.j2"}, "lost.j2: cannot include other.j2, which is no template"),
        ({"scale": [0, 1], "labels": ["a", "b"]}, "scale and labels: expected one of them"),
        ({"scale": [0, 100], "expectation": True}, "at most 21 whole numbers"),
        ({"model": None}, "model: expected the name"),
        ({"reads": "code"}, "expected reference, source or both"),
        ({"samples": 0}, "samples 0"),
        ({"samples": 3, "temperature": 0}, "all samples are equal"),
        ({"colour": "red"}, "unknown key colour"),
        ({"template": "none.j2"}, "expected a file, or one of adequacy, adequacy-given-code, pairwise"),
        ({"template": "own.j2"}, r"own.j2: does not use {{ candidate }}"),
        ({"template": "wrong.j2"}, "wrong.j2: 'canddate' is undefined"),
        ({"pairwise": True}, "a pair-wise judge compares systems"),
        ({"pairwise": True, "expectation": True}, "pairwise: goes without"),
    ],
)
def test_wrong_judges_are_refused_before_any_request(server, judge, pairs, tmp_path, keys, message):
    (tmp_path / "own.j2").write_text("How good is {{ reference }}?")
    (tmp_path / "wrong.j2").write_text("{{ canddate }}")
    (tmp_path / "lost.j2").write_text("{% include 'other.j2' %}")
    done = run("score", "--jsonl", pairs, "--metrics", judge(**keys))
    assert done.returncode == 2
    assert message.replace("\\", "") in done.stderr
    assert done.stderr.count("\n") == 1
    assert not server.requests


@pytest.mark.parametrize("value", ["2026-11-28", "nan", "[inf]"])
def test_parameters_that_no_request_can_hold_are_refused(server, judge, pairs, value):
    done = run("score", "--jsonl", pairs, "--metrics", judge(text=f"extra = {{when = {value}}}"))
    assert done.returncode == 2
    assert "judge.toml: extra: expected values that JSON can hold" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not server.requests


def test_pairs_without_a_score_are_counted(server, judge, pairs):
    server.reply = lambda prompt: "5.5" if "launches" in prompt else rate(prompt)
    done = run("score", "--jsonl", pairs, "--metrics", f"simllm,{judge()}", "-f", "json")
    assert done.returncode == 0, done.stderr
    found, name = json.loads(done.stdout), judge()
    assert found["rows"][-1][name] is None
    assert found[f"left out of mean {name}"] == 1
    assert found[f"mean {name}"] == pytest.approx(24 / 7)
    assert any('1 of 8 replies are without a score, such as "5.5"' in one for one in found["warnings"])
    assert found[f"requests of {name}"] == 8
    assert found[f"bias of {name}"]["n"] == 7


def test_no_score_at_all_is_an_error(server, judge, pairs):
    server.reply = lambda prompt: (400, {}, b'{"error": {"message": "unknown parameter"}}')
    done = run("score", "--jsonl", pairs, "--metrics", judge())
    assert done.returncode == 2
    assert "8 of 8 requests failed for good (HTTP status 400: unknown parameter)" in done.stderr


def test_failed_requests_are_repeated_on_demand(server, judge):
    server.reply = lambda prompt: (400, {}, b"{}") if "paints" in prompt else rate(prompt)
    assert math.isnan(load(judge()).score(examples()).values[4])
    server.reply = rate
    assert math.isnan(load(judge()).score(examples()).values[4])
    assert load(judge(retry_failed=True)).score(examples()).values[4] == 4
    assert len(server.requests) == len(PAIRS) + 1


@pytest.mark.slow
def test_lost_endpoint_is_exit_1_and_the_same_command_continues(server, judge, pairs):
    gone = []

    def reply(prompt):
        gone.append(prompt)
        return rate(prompt) if len(gone) <= 3 else (503, {"Retry-After": "0"}, b"{}")

    server.reply = reply
    command = "score", "--jsonl", pairs, "--metrics", judge(parallel=1), "-f", "json"
    done = run(*command)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "are missing" in done.stderr
    assert "the same command continues" in done.stderr
    server.reply = rate
    assert run(*command).returncode == 0
    answered = [body["messages"][0]["content"] for _, _, body in server.requests]
    assert len(answered) == 3 + 5 + 5


def test_a_killed_run_continues_without_asking_twice(server, judge, tmp_path):
    server.delay = 0.05
    name = judge(parallel=1)
    code = (
        "import sys; from simllm.metrics import Example, load\n"
        "load(sys.argv[1]).score([Example(f'candidate {n}', 'reference') for n in range(200)])"
    )
    server.reply = lambda prompt: "3"
    process = subprocess.Popen([sys.executable, "-c", code, name])
    try:
        while len(server.requests) < 5:
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    kept = (tmp_path / "replies.jsonl").read_bytes().count(b"\n")
    assert kept >= 3
    server.delay, before = 0, len(server.requests)
    scores = load(name).score([Example(f"candidate {n}", "reference") for n in range(200)])
    assert scores.values.tolist() == [3] * 200
    assert len(server.requests) - before == 200 - kept


def test_judge_reads_texts_as_they_are_in_a_correlation(server, judge, pairs):
    done = run("evaluate", "correlation", "--ratings", pairs, "--metrics", f"rouge-1,{judge()}", "-f", "json")
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)["rows"][1]
    assert row["spearman"] == pytest.approx(1)


def test_study_leaves_out_pairs_without_a_score(server, judge, pairs, tmp_path):
    server.reply = lambda prompt: "unclear" if "launches" in prompt else rate(prompt)
    out = tmp_path / "report"
    done = run("evaluate", "study", "--ratings", pairs, "--metrics", f"rouge-1,{judge()}", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "1 of 8 pairs have no score by judge=" in done.stderr
    assert not any(KEY.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_reference_free_judge_reads_the_code(server, judge, pairs):
    server.reply = lambda prompt: "Score: 2" if "def f3()" in prompt else "Score: 5"
    name = judge(reads="source")
    done = run("score", "--jsonl", pairs, "--metrics", name, "-f", "json")
    assert [row[name] for row in json.loads(done.stdout)["rows"]] == [5, 5, 5, 2, 5, 5, 5, 5]
    prompt = server.requests[0][2]["messages"][0]["content"]
    assert not any(reference in prompt for reference, *_ in PAIRS)
    done = run("score", "a", "b", "--metrics", name)
    assert done.returncode == 2
    assert "the code is read, too: expected --jsonl FILE" in done.stderr


def logprobs_reply(body):
    tokens = {"4": 0.5, "5": 0.25, "2": 0.25}
    best = [{"token": token, "logprob": math.log(value)} for token, value in tokens.items()]
    content = [
        {"token": "Score", "logprob": 0, "top_logprobs": []},
        {"token": ": ", "logprob": 0, "top_logprobs": []},
        {**best[0], "top_logprobs": best}, {"token": "/5", "logprob": 0, "top_logprobs": []},
    ]  # fmt: skip
    choice = {"message": {"content": "Score: 4/5"}, "finish_reason": "stop", "logprobs": {"content": content}}
    return 200, {}, json.dumps({"choices": [choice]}).encode()


def test_expectation_over_probabilities(server, judge):
    name = judge(expectation=True)
    server.whole, server.reply = True, logprobs_reply
    pair = [Example("a b", "c d")]
    assert load(name).score(pair).values[0] == pytest.approx(0.5 * 4 + 0.25 * 5 + 0.25 * 2)
    server.reply = lambda body: "4"
    with pytest.raises(InputError, match=r"judge.toml: expectation: the endpoint sends no log-prob"):
        load(name).score([Example("x", "y")])
    assert load(name).score(pair).values[0] == pytest.approx(3.75)  # from the cache


@pytest.fixture
def systems(tmp_path):
    """Write the candidates of a good and a bad system, and their references."""
    texts = {"good": [b for _, b, _ in PAIRS], "bad": ["does something"] * 7 + [PAIRS[7][1]]}
    for name, lines in {**texts, "references": [a for a, *_ in PAIRS]}.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return ["-r", tmp_path / "references.txt", "-c", tmp_path / "good.txt", tmp_path / "bad.txt"]


def test_pairwise_judge_counts_wins_in_both_orders(server, judge, systems):
    server.reply = better
    done = run("compare", *systems, "--metric", judge(pairwise=True), "-f", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["mean"] for one in found["systems"]] == [7.5 / 8, 0.5 / 8]
    assert found["judge"]["requests"] == 14  # equal texts are a tie, without a question
    assert found["judge"]["orders disagree"] == 0
    assert found["judge"]["first text named"] == 0.5


def better(prompt):
    first = prompt.split("The first description:\n")[1].split("\n")[0]
    return f"Answer: {'second' if first == 'does something' else 'first'}"


def test_a_judge_that_always_names_the_first_text_finds_ties(server, judge, systems):
    server.reply = lambda prompt: "Answer: first"
    done = run("compare", *systems, "--metric", judge(pairwise=True), "-f", "json")
    found = json.loads(done.stdout)
    assert [one["mean"] for one in found["systems"]] == [0.5, 0.5]
    assert found["judge"]["orders disagree"] == 1
    assert any("100% of its 14 decisions name the first text" in one for one in found["warnings"])


def test_orders_of_unreadable_replies_do_not_count(server, judge, systems):
    server.reply = lambda prompt: "Hm." if "launches" in prompt or "array" in prompt else "Answer: first"
    done = run("compare", *systems, "--metric", judge(pairwise=True), "-f", "json")
    found = json.loads(done.stdout)
    assert found["judge"]["orders disagree"] == 1  # of the pairs with two readable replies
    assert any("replies are without one of first, second and tie" in one for one in found["warnings"])


def test_pointwise_judge_compares_systems(server, judge, systems):
    server.reply = lambda prompt: "Score: 1" if "does something" in prompt else rate(prompt)
    done = run("compare", *systems, "--metric", judge(), "-f", "latex")
    assert done.returncode == 0, done.stderr
    assert "System & judge=" in done.stdout
    assert "good & $3.500" in done.stdout


def test_cascade_asks_about_unsure_pairs_only(server, judge, pairs, tmp_path):
    name = judge().removeprefix("judge=")
    command = "score", "--jsonl", pairs, "--judge", name, "--judge-below", ".05:.95", "-f", "json"
    done = run(*command)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    unsure = [row for row in found["rows"] if 0.05 <= row["same"] <= 0.95]
    assert found["pairs for the judge"] == len(unsure) == len(server.requests) > 0
    differ = 0
    for row, (*_, rating) in zip(found["rows"], PAIRS, strict=True):
        if row in unsure:
            assert (row["by"], row["judge"], row["decided"]) == ("judge", rating, (rating - 1) / 4)
            differ += (row["decided"] >= 0.5) != (row["same"] >= 0.5)
        else:
            assert (row["by"], row["judge"], row["decided"]) == ("simllm", None, row["same"])
    assert found["decisions that differ"] == differ
    assert found["completion tokens"] == 7 * len(unsure)
    assert run(*command).stdout.replace('"requests sent now": 0', "") == done.stdout.replace(
        f'"requests sent now": {len(unsure)}', ""
    )


def test_cascade_falls_back_to_simllm_without_any_readable_reply(server, judge, pairs):
    server.reply = lambda prompt: "I cannot rate this."
    name = judge().removeprefix("judge=")
    done = run("score", "--jsonl", pairs, "--judge", name, "--judge-below", "0:1", "-f", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert all(row["by"] == "simllm" and row["decided"] == row["same"] for row in found["rows"])
    assert found["pairs without a judge's score"] == found["pairs for the judge"] == len(PAIRS)
    assert any("8 of 8 replies are without a score" in one for one in found["warnings"])
    assert "8 of 8 replies are without a score" in done.stderr


@pytest.mark.parametrize("value", ["", "x", ".8:.2", "0:2", ".2", "-1:1", "nan:1"])
def test_wrong_intervals_are_refused(judge, pairs, value):
    name = judge().removeprefix("judge=")
    done = run("score", "--jsonl", pairs, "--judge", name, f"--judge-below={value}")
    assert done.returncode == 2
    assert "expected two probabilities, such as .2:.8" in done.stderr


def test_bias_finds_a_judge_that_likes_long_texts():
    random = np.random.default_rng(1)
    lengths = random.integers(1, 30, 200)
    candidates = [" ".join(["word"] * length) for length in lengths]
    quality = random.normal(size=200)
    fair = judge_bias(quality * 2 + 3, quality, candidates, ["other text"] * 200)
    assert all(trend.p_value > 0.05 or math.isnan(trend.rho) for trend in fair.trends)
    assert fair.rows[0].excess == 0
    groups = {"system": ["ab"[int(length > 15)] for length in lengths]}
    biased = judge_bias(quality + lengths / 10, quality, candidates, ["other text"] * 200, groups)
    assert biased.trends[0].rho > 0.5
    assert biased.sentences()[0].startswith("words of the candidate: kinder than simllm to pairs with more")
    by_system = {row.group: row for row in biased.rows if row.factor == "system"}
    assert by_system["b"].low > 0 > by_system["a"].high
    assert judge_bias(quality[:5], quality[:5], candidates[:5], candidates[:5]) is None


def test_bias_stands_in_the_report(server, judge, pairs, tmp_path):
    page = tmp_path / "page.html"
    metrics = f"simllm,{judge()}"
    done = run("score", "--jsonl", pairs, "--metrics", metrics, "--report", page, "--group-by", "system")
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert "Bias of judge=" in text
    assert "copied words of the candidate" in text
    done = run("score", "--jsonl", pairs, "--metrics", metrics, "--group-by", "system", "-f", "json")
    rows = json.loads(done.stdout)[f"bias of {judge()}"]["rows"]
    assert {row["group"] for row in rows if row["factor"] == "system"} == {"a", "b"}
