"""Removal of repeated texts, and of texts that occur in evaluation sets, from fetched corpora."""

import json

from tests.train.data.conftest import a_file, a_set, digest, fetch, packed_lines, write_catalog
from train.data.filters import EvaluationTexts, clean_corpus, third_of_pairs


def test_corpus_drops_repeated_and_one_word_texts():
    texts = ["Adds  two ", "adds two.", "adds", "", "sets the old name", "sets it\tall"]
    rows = [{"source": str(n), "text": text} for n, text in enumerate(texts)]
    assert list(clean_corpus(rows, EvaluationTexts(["Sets the old name!"]))) == [
        {"source": "0", "text": "Adds two"},
        {"source": "5", "text": "sets it all"},
    ]


def test_kept_third_of_the_pairs_does_not_depend_on_their_order():
    rows = [{"reference": f"adds number {n}", "candidate": "sums"} for n in range(900)]
    kept = list(third_of_pairs([*rows, *rows], EvaluationTexts([])))
    assert 250 < len(kept) < 350
    assert list(third_of_pairs(reversed(rows), EvaluationTexts([]))) == kept
    without = list(third_of_pairs(rows, EvaluationTexts([kept[0]["reference"]])))
    assert without == kept[1:]


def test_a_fetched_corpus_holds_no_text_of_the_evaluation_sets(host, tmp_path):
    host.publish("owner/texts", {"a.txt": "Adds two numbers .\nSets the name .\nsets the NAME\nruns\n"})
    host.publish("owner/rated", {"h.csv": "Generation,Reference\nx,adds two numbers\n"})
    part = {"repository": "owner/texts", "paths": ["a.txt"], "reader": "lines", "language": "java"}
    rows = [{"language": "java", "text": "Sets the name ."}]
    file = a_file("corpus.jsonl", [part], digest(packed_lines(rows)), cleaning="corpus")
    rated = {"repository": "owner/rated", "paths": ["h.csv"], "reader": "commit_messages"}
    table = write_catalog(tmp_path / "sets.yaml", host, [a_set("texts", [file])], [rated])
    done = fetch("--catalog", table, "--root", tmp_path / "data", "--host", host.folder)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in (tmp_path / "data/corpus.jsonl").read_text().splitlines()] == rows
