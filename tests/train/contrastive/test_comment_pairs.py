"""Pairs of comments with another meaning, and the cosines of teachers."""

import json

import numpy as np

from train.contrastive import comment_pairs
from train.contrastive.comment_pairs import pair, read_files

FILES = [["opens the file", "open the file", "closes it"], ["sorts a list"], ["gets the size", "sets a name"]]


def unit(*rows):
    vectors = np.array(rows, np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_labels_say_how_a_pair_was_chosen_and_alike_texts_are_no_negatives():
    embeddings = unit([1, 0, 0, 0], [1, 0.1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1], [0, 0, 0, 1])
    rows = list(pair(FILES, embeddings))
    texts = [text for file in FILES for text in file]
    assert {row["label"] for row in rows} == {"random", "file", "near", "alike"}
    for row in rows:
        i, j = texts.index(row["a"]), texts.index(row["b"])
        assert i != j
        assert abs(row["cosine"] - float(embeddings[i] @ embeddings[j])) < 1e-4
        same_words = {row["a"], row["b"]} == {"opens the file", "open the file"}
        assert (row["label"] == "alike") == (row["cosine"] >= 0.6 or same_words)
        if row["label"] == "file":
            assert any({row["a"], row["b"]} <= set(file) for file in FILES)
    assert rows == list(pair(FILES, embeddings))


def test_texts_of_a_file_stay_together_and_held_out_comments_are_left_out(tmp_path):
    rows = [
        {"summary": "Opens it.", "path": "a", "split": "train"},
        {"summary": "Sorts.", "path": "b", "split": "train"},
        {"summary": "Held out.", "path": "a", "split": "test"},
        {"summary": "opens it.", "path": "b", "split": "train"},  # equal once it is cleaned
        {"summary": "Closes it.", "path": "a", "split": "train"},
        {"summary": "", "path": "a", "split": "train"},
        {"summary": "no file"},
    ]
    file = tmp_path / "comments.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_files(file, 100)
    assert sorted(found) == [["no file"], ["opens it .", "closes it ."], ["sorts ."]]
    assert len(read_files(file, 1)) == 1


def test_command_writes_cosines_of_the_teachers(call, teachers, short_texts, tmp_path):
    file, out = tmp_path / "texts.jsonl", tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps({"summary": text}) + "\n" for text in short_texts[:30]))
    command = (file, out, "--texts", 20, "--teachers", *teachers.values())
    done = call(comment_pairs, *command)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 40  # a random and a near text for each
    assert done.stderr.endswith(f"40 pairs in {out}\n")
    assert all(-1 <= row["cosine"] <= 1 for row in rows)
    assert call(comment_pairs, *command).returncode == 2  # exists already


def test_a_lone_text_is_an_error(call, teachers, tmp_path):
    (tmp_path / "one.jsonl").write_text('{"summary": "adds it"}\n')
    done = call(
        comment_pairs, tmp_path / "one.jsonl", tmp_path / "out.jsonl", "--teachers", *teachers.values()
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "expected two or more different texts" in done.stderr
