"""Texts of several sentences: their division into clauses, and their scores."""

import json
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from simllm import InputError, SimLLM
from simllm.cli.main import main
from simllm.scoring.sentences import ALLOWANCE
from simllm.text_cleaning import divide

SENTENCES = [
    "Opens the file and reads all lines.",
    "Returns the number of elements in the queue.",
    "Sends an e-mail to the customer, e.g. about the invoice.",
    "If the user is unknown, throws an exception.",
    "Sorts the entries by name!",
    "Closes the connection to the database .",
]
SENTENCE = st.sampled_from(SENTENCES)
TEXT = st.lists(SENTENCE, min_size=1, max_size=4, unique=True)
UNRELATED = "The moon orbits a distant planet every third winter."


@pytest.fixture(scope="module")
def metric():
    return SimLLM()


def score(metric, candidate, reference):
    return metric.score([candidate], [reference]).values[0]


@pytest.mark.parametrize(
    ("text", "sentences", "clauses"),
    [
        ("Rounds, e.g. to 1.5. Never fails.", 2, ["Rounds, e.g. to 1.5.", "Never fails."]),
        ("opens the file . closes the file .", 2, ["opens the file .", "closes the file ."]),
        (
            "This method is used to sort a list. It then returns it to the caller.",
            2,
            ["sort a list.", "returns it to the caller."],
        ),
        (
            "The function `addAll` checks its input, and then it adds all items to the list. Done now.",
            2,
            ["checks its input", "it adds all items to the list.", "Done now."],
        ),
        (
            "## Summary\n\nHere is a summary:\n\n- **Opens** the [file](http://x.y)\n- Reads `its` lines",
            2,
            ["Opens the file", "Reads its lines"],
        ),
        ("Opens the file.\n\n```\nx(). y.\n```\nReads it twice.", 2, ["Opens the file.", "Reads it twice."]),
        ("/** Gets the name. Never fails.\n * @param x Not null. */", 2, ["Gets the name.", "Never fails."]),
        ("/** Gets the name.\n *\n * Never fails at all. */", 1, ["Gets the name."]),
        ("Gets the name.\n@return the name. Not null.", 1, ["Gets the name."]),
        ("Note that this method must be called first", 1, ["Note that this method must be called first"]),
        ("", 0, []),
        ("...\n\n. .", 0, []),
        ("Waits 1 . 5 seconds , e . g . for a lock .", 1, ["Waits 1.5 seconds", "e.g. for a lock ."]),
    ],
)  # fmt: skip
def test_division(text, sentences, clauses):
    parts = divide(text)
    assert list(parts.texts) == clauses
    assert parts.sentences == sentences


def test_openers_and_code_count_as_length():
    text = "This method is used to sort a list.\n\n```\na b c\n```\nIt returns it."
    assert divide(text).words == 14


@settings(deadline=None)
@given(st.text())
def test_division_reads_any_text(text):
    parts = divide(text)
    assert all(part.strip() for part in parts.texts)
    assert bool(parts.texts) == bool(parts.sentences)


def test_pairs_of_single_sentences_score_as_before(metric, comments):
    whole = SimLLM(long="whole")
    texts = [text for text in comments if divide(text).sentences == 1][:200]
    pairs = texts[:100], texts[100:]
    new, old = metric.score(*pairs), whole.score(*pairs)
    assert new.values.tobytes() == old.values.tobytes()
    assert new.same.tobytes() == old.same.tobytes()
    assert (new.truncated, new.deduplicated) == (old.truncated, old.deduplicated)


def test_score_of_a_worked_example(metric):
    candidate, reference = (
        "Opens the file. Sends a mail to the user.",
        "Opens a file. Reads all its lines now.",
    )
    sides = ["Opens the file.", "Sends a mail to the user."], ["Opens a file.", "Reads all its lines now."]
    similar = np.array([[score(metric, a, b) for b in sides[1]] for a in sides[0]])
    precision = (3 * similar[0].max() + 6 * similar[1].max()) / 9
    recall = (3 * similar[:, 0].max() + 5 * similar[:, 1].max()) / 8
    factor = (8 + ALLOWANCE) / (9 + ALLOWANCE)
    expected = factor * 2 * precision * recall / (precision + recall)
    assert score(metric, candidate, reference) == pytest.approx(expected, abs=1e-5)


@settings(deadline=None, max_examples=10)
@given(TEXT, TEXT, st.randoms(use_true_random=False))
def test_order_of_the_sentences_does_not_matter(metric, candidate, reference, random):
    before = metric.score([" ".join(candidate)], [" ".join(reference)])
    mixed = random.sample(candidate, len(candidate)), random.sample(reference, len(reference))
    after = metric.score([" ".join(mixed[0])], [" ".join(mixed[1])])
    assert after.values == pytest.approx(before.values, abs=1e-5)
    assert after.same == pytest.approx(before.same, abs=1e-5)


@settings(deadline=None, max_examples=10)
@given(st.lists(SENTENCE, min_size=1, max_size=5).map(" ".join))
def test_identical_texts_score_one(metric, text):
    scores = metric.score([text, f"  {text}\n"], [text, text.upper()])
    assert scores.values.tolist() == scores.same.tolist() == [1, 1]
    assert not scores.changed.any()


@settings(deadline=None, max_examples=10)
@given(TEXT, TEXT)
@example(SENTENCES[:2], SENTENCES[:1])
def test_additions_that_add_nothing_cost(metric, candidate, reference):
    assume(len(candidate) > 1 or len(reference) > 1)
    before = score(metric, " ".join(candidate), " ".join(reference))
    assert 0 <= before <= 1
    assume(before > 0.3)
    assert score(metric, " ".join([*candidate, UNRELATED]), " ".join(reference)) < before
    if sum(map(len, candidate)) >= sum(map(len, reference)):
        assert score(metric, " ".join(candidate * 2), " ".join(reference)) < before


@settings(deadline=None, max_examples=6)
@given(st.lists(SENTENCE, min_size=3, max_size=5, unique=True))
def test_omissions_and_repetitions_cost(metric, text):
    whole = " ".join(text)
    omission, repetition = score(metric, " ".join(text[1:]), whole), score(metric, f"{whole} {whole}", whole)
    assert omission < 1
    assert 0.5 < repetition < 1
    # Recall falls as if the candidate were the reference, but a short candidate has no excess length.
    assert omission >= score(metric, whole, " ".join(text[1:]))


def test_same_falls_when_one_sentence_contradicts(metric):
    reference = "Opens the file. Returns true if the list is empty. Sorts the entries by name."
    changed = reference.replace("is empty", "is not empty")
    same = metric.score([changed, reference], [reference, reference]).same
    assert same[1] == 1
    assert 0.3 < same[0] < 0.9  # two sentences of three still say the same
    _, _, comparison = metric.compare_sentences(changed, reference)
    assert comparison.same[0].argmin() == 1


def test_pairs_do_not_depend_on_other_pairs_or_their_number(metric):
    texts = [" ".join(SENTENCES[i : i + 3]) for i in range(4)] + SENTENCES + ["", "漢字. 漢字.", "..."]
    candidates, references = texts, texts[::-1]
    together = metric.score(candidates, references)
    alone = [metric.score([c], [r]) for c, r in zip(candidates, references, strict=True)]
    assert together.values == pytest.approx([one.values[0] for one in alone], abs=1e-5)
    assert together.same == pytest.approx([one.same[0] for one in alone], abs=1e-5)
    streamed = [scores.values for _, scores in metric.stream(zip(candidates, references, strict=True))]
    assert np.concatenate(streamed) == pytest.approx(together.values, abs=1e-5)


def test_fast_mode_and_copies_in_other_processes_give_the_same_scores(metric):
    pairs = [" ".join(SENTENCES[:3])] * 2, [" ".join(SENTENCES[1:4]), SENTENCES[0]]
    expected = metric.score(*pairs)
    assert SimLLM(mode="fast").score(*pairs).values == pytest.approx(expected.values, abs=0.01)
    copy = pickle.loads(pickle.dumps(metric))
    assert copy.score(*pairs).values.tolist() == expected.values.tolist()
    assert copy.signature == metric.signature


@pytest.mark.slow
def test_clauses_of_long_texts_are_read_to_the_end(metric):
    filler = " ".join(f"Prints the line number {i} of the table." for i in range(60))
    late = f"{filler} {SENTENCES[2]}"
    comparison = metric.compare_sentences(late, f"{SENTENCES[2]} {SENTENCES[0]}")[2]
    assert comparison.similar.max() == 1  # the last sentence is found after some 500 tokens
    assert metric.score([late], [SENTENCES[2]]).truncated == 0
    SimLLM(on_long="error").score([late], [SENTENCES[2]])
    endless = f"{SENTENCES[0]} {'reads the buffer ' * 200}"
    with pytest.raises(InputError, match=r"candidate 1: .* tokens, more than the model's 256"):
        SimLLM(on_long="error").score([endless], [SENTENCES[0]])
    with pytest.warns(UserWarning, match="read in windows"):
        windows = SimLLM(on_long="window").score([endless], [SENTENCES[0]])
    assert windows.truncated == 1
    assert "|long:sentences-window|" in windows.signature
    with pytest.raises(InputError, match=r"candidate 1: .* characters, more than 10000"):
        SimLLM(on_long="error").score([late * 10], [SENTENCES[0]])


def test_every_similarity_of_embeddings_stays_within_its_bounds():
    candidate, reference = " ".join(SENTENCES[:3]), " ".join(SENTENCES[2:5])
    values = (
        SimLLM(similarity="inverse-euclidean").score([candidate, reference], [reference, reference]).values
    )
    assert 0 < values[0] < values[1] == 1


def test_tokens_are_matched_in_whole_texts():
    assert SimLLM(similarity="f1").long == "whole"
    with pytest.raises(InputError, match="long 'sentences': similarity f1 matches the tokens"):
        SimLLM(similarity="f1", long="sentences")
    with pytest.raises(InputError, match="long 'parts': expected one of sentences, whole"):
        SimLLM(long="parts")


def test_options_of_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = [(" ".join(SENTENCES[:3]), SENTENCES[0]), (SENTENCES[1], SENTENCES[1])]
    lines = [json.dumps({"candidate": c, "reference": r}) for c, r in pairs]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))

    def scores(*options):
        assert main(["score", "--jsonl", "a.jsonl", "-f", "json", *options]) in (0, None)
        return json.loads(capsys.readouterr().out)

    new, old = scores(), scores("--long", "whole")
    assert "|long:sentences|" in new["signature"]
    assert "long" not in old["signature"]
    assert new["rows"][0]["score"] < old["rows"][0]["score"]
    assert new["rows"][1] == old["rows"][1]
    main(["score", "--jsonl", "*.jsonl", "-f", "json", "--long", "whole", "-o", "tables", "-q"])
    capsys.readouterr()
    shard = json.loads((tmp_path / "tables" / "a.json").read_text())
    assert shard["rows"] == old["rows"]
    assert main(["score", "a", "b", "--metrics", "jaccard", "--long", "whole"]) == 2


def test_very_many_clauses_are_compared_in_bounded_memory(metric):
    text = "a. " * 3_333
    parts = divide(text)
    assert len(parts.texts) == 256
    assert parts.sentences == 3_333
    assert " ".join(parts.texts).count("a.") == 3_333
    tracemalloc.start()
    assert metric.score([text], [text]).values == [1.0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6  # all pairs of clauses at once take 600 MB
