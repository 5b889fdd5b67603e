import gzip
import json

import numpy as np
import pytest

from simllm import InputError, SimLLM
from simllm.evaluation import ratings
from simllm.evaluation.correlation import score_rated_pairs
from simllm.io.tables import escape_latex
from simllm.metrics import registry

GOOD = {"reference": "a b", "candidate": "a c", "rating": 2}
OTHER = {**GOOD, "rating": 3}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([GOOD, GOOD, GOOD], "all ratings are 2; there is nothing to correlate with"),
        ([GOOD], "1 rated pair; a correlation needs at least 3"),
        ([GOOD, GOOD], "2 rated pairs; a correlation needs at least 3"),
        ([GOOD, {**GOOD, "rating": "high"}], 'line 2: expected a number under "rating"'),
        ([GOOD, {**GOOD, "rating": float("nan")}], 'line 2: expected a number under "rating"'),
        ([{**GOOD, "reference": None}], 'line 1: expected a text under "reference"'),
        ([{"reference": "a", "rating": 1}], 'line 1: expected a text under "candidate"'),
        ([[]], "line 1: is a JSON array; expected one object on each line"),
        ([GOOD, {**GOOD, "rating": 10**400}], 'line 2: expected a number under "rating"'),
        ([GOOD, {**GOOD, "rating": float("inf")}], 'line 2: expected a number under "rating"'),
        ([GOOD, {**GOOD, "rating": -1e300}], 'line 2: expected a number under "rating"'),
        ([GOOD, {**GOOD, "rating": True}], 'line 2: expected a number under "rating"'),
        ([GOOD, {**GOOD, "rating": "3"}], 'line 2: expected a number under "rating"'),
        ([{**GOOD, "ratings": [1, 10**400]}], 'line 1: expected numbers under "ratings"'),
        ([{**GOOD, "ratings": {"a": False, "b": 4}}], 'line 1: expected numbers under "ratings"'),
        ([{**GOOD, "ratings": [float("nan"), 2]}], 'line 1: expected numbers under "ratings"'),
        ([{**GOOD, "metrics": {"m": 10**400}}, GOOD, OTHER], "line 1: expected an object of numbers under"),
        (
            [{**GOOD, "ratings": 3}, GOOD, OTHER],
            'line 1: expected a list of numbers, or an object, under "ratings"',
        ),
        (
            [GOOD, {**GOOD, "ratings": [1, 2]}, OTHER],
            'line 2: "rating" is 2, but the mean of "ratings" is 1.5',
        ),
        ([GOOD, {**GOOD, "rating": None}], 'line 2: expected a number under "rating", not null'),
        ([GOOD, {**GOOD, "ratings": [None, None]}], 'line 2: expected numbers under "ratings"; all are null'),
        ([GOOD, {**GOOD, "metrics": [1]}, OTHER], 'line 2: expected an object of numbers under "metrics"'),
        ([{**GOOD, "metrics": {"m": "x"}}, GOOD, OTHER], "line 1: expected an object of numbers under"),
        (
            [{**GOOD, "ratings": [1, 2], "raters": ["x", "x"]}, GOOD, OTHER],
            "line 1: expected 2 different raters",
        ),
    ],
)
def test_error_about_a_bad_rating_names_the_line(tmp_path, rows, message):
    file = tmp_path / "ratings.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=message):
        ratings.load(file)


def test_a_null_is_a_rater_who_gave_no_rating(tmp_path):
    rows = [
        {"reference": "a", "candidate": "b", "ratings": {"x": 1, "y": None}, "rating": None},
        {"reference": "a", "candidate": "c", "ratings": [None, 3], "raters": ["x", "y"]},
        {"reference": "a", "candidate": "d", "ratings": None, "rating": 2},
    ]
    file = tmp_path / "ratings.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    rated = ratings.load(file)
    assert rated.values.tolist() == [1, 3, 2]
    nan = np.nan
    assert rated.raters == pytest.approx(np.array([[1, nan], [nan, 3], [nan, nan]]), nan_ok=True)


def test_raters_are_matched_by_name(tmp_path):
    rows = [
        {"reference": "a", "candidate": "b", "ratings": [1, 2], "raters": ["x", "y"], "language": "java"},
        {"reference": "a", "candidate": "c", "ratings": {"y": 3, "z": 5}, "language": "go"},
        {
            "reference": "a",
            "candidate": "d",
            "ratings": [4],
            "raters": ["z"],
            "language": "go",
            "metrics": {"m": 1},
        },
    ]
    file = tmp_path / "ratings.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    rated = ratings.load(file)
    assert rated.values == pytest.approx([1.5, 4, 4])
    nan = np.nan
    assert rated.raters == pytest.approx(np.array([[1, 2, nan], [nan, 3, 5], [nan, nan, 4]]), nan_ok=True)
    assert rated.groups == {"language": ["java", "go", "go"]}
    assert rated.columns["m"] == pytest.approx([nan, nan, 1], nan_ok=True)


TABLE = """,function_id,user_id,accurate,similarity,source,text,text.1,rouge-l,sb_euclidean,function
0,7,1,4,4,reference,gets the name,returns <UNK> name,0.4,1.5,7
1,7,3,4,1,baseline,returns <UNK> name,gets the name,0.4,1.5,7
2,8,1,4,2,reference,"adds, then sorts",sorts it,0.3,,8
3,9,3,4,3,baseline,closes it,closes the file,0.6,0.5,9
"""


@pytest.mark.parametrize("name", ["final_megafile.csv", "final_megafile.csv.gz"])
def test_reads_the_published_table_of_haque(tmp_path, name):
    file = tmp_path / name
    with gzip.open(file, "wt") if name.endswith(".gz") else file.open("w") as table:
        table.write(TABLE)
    rated = ratings.load(file)
    assert rated.references == ["gets the name", "adds, then sorts", "closes the file"]
    assert rated.candidates == ["returns name", "sorts it", "closes it"]
    assert rated.values == pytest.approx([2.5, 2, 3])
    assert rated.raters == pytest.approx(np.array([[4, 1], [2, np.nan], [np.nan, 3]]), nan_ok=True)
    assert rated.columns.keys() == {"rouge-l", "sb_euclidean"}
    assert rated.columns["sb_euclidean"] == pytest.approx([1.5, np.nan, 0.5], nan_ok=True)


def test_placeholders_are_removed_in_linear_time(tmp_path):
    file = tmp_path / "final_megafile.csv"
    cells = ["a <UNK><b>c> d", "e<f <> g>", "<" * 130_000]
    rows = [f"{n},{n},1,4,{n},reference,a,{cell},0,0,0" for n, cell in enumerate(cells * 2, 1)]
    file.write_text("\n".join([TABLE.splitlines()[0], *rows]) + "\n")
    assert ratings.load(file).candidates[:2] == ["a d", "e<f <> g>"]


def test_a_line_break_in_a_cell_separates_words(tmp_path):
    file = tmp_path / "final_megafile.csv"
    file.write_bytes(TABLE.replace("adds, then", "adds, then\nsoon").replace("\n", "\r\n").encode())
    assert ratings.load(file).references[1].split() == ["adds,", "then", "soon", "sorts"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            TABLE.replace("similarity", "likeness"),
            "has no column similarity; expected JSON lines with reference",
        ),
        (
            TABLE.replace(",2,reference", ",much,reference"),
            r"row 3: not a row of the table of Haque et al. \(could not",
        ),
        (
            TABLE.replace("closes it", "x" * 200_000),
            r"row 4: not CSV .a value of more than 131,072",
        ),
    ],
)
def test_malformed_tables_are_refused(tmp_path, table, message):
    file = tmp_path / "table.csv"
    file.write_text(table)
    with pytest.raises(InputError, match=message):
        ratings.load(file)


def test_fields_may_be_renamed(tmp_path):
    file = tmp_path / "ratings.jsonl"
    rows = [{"a": f"a {i}", "b": f"b {i}", "score": i, "rating": -i, "reference2": "r"} for i in range(3)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    plain = ratings.load(file)  # the field names of sentence similarity sets
    assert (plain.references[1], plain.candidates[1], plain.values.tolist()) == ("a 1", "b 1", [0, 1, 2])
    named = ratings.load(file, ("b", "reference2", "rating"))
    assert (named.references[1], named.candidates[1], named.values.tolist()) == ("b 1", "r", [0, -1, -2])
    with pytest.raises(InputError, match='line 1: expected a number under "stars"'):
        ratings.load(file, ("a", "b", "stars"))


@pytest.mark.parametrize("key", ["passed", "ratings", "votes"])
def test_a_missing_renamed_field_names_the_line(tmp_path, key):
    (tmp_path / "rated.jsonl").write_text(json.dumps(GOOD) + "\n")
    with pytest.raises(InputError, match=f'line 1: expected .* under "{key}"'):
        ratings.load(tmp_path / "rated.jsonl", ("reference", "candidate", key))


def test_labels_are_one_line_and_never_blank(tmp_path):
    rows = [
        {**GOOD, "rating": i, "system": name}
        for i, name in enumerate(["a\n b\x00", " ", "\ud800 \u05d0", "a b"])
    ]
    file = tmp_path / "odd\nname\udcff.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = ratings.load(file)
    assert found.name == "odd name\ufffd"
    assert found.groups["system"] == ["a b", "(blank)", "\ufffd \u05d0", "a b"]


def test_ratings_in_another_order_have_the_same_mean(tmp_path):
    given = [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.7, 0.1, 0.1]]
    file = tmp_path / "ratings.jsonl"
    rows = [{"reference": "a", "candidate": "b", "ratings": row} for row in given]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert ratings.load(file).values.tolist() == [0.2, 0.2, 0.3]


def test_names_are_escaped_for_latex():
    assert escape_latex("a_b\n\nc $\\frac$ <x|y>") == (
        r"a\_b c \$\textbackslash{}frac\$ \textless{}x\textbar{}y\textgreater{}"
    )


def test_the_learned_metric_gets_texts_whose_sentences_it_can_find(model_folder, tmp_path):
    """In cleaned texts, the "." of `this.done()` stands alone, as that between two sentences does."""
    pairs = [
        ("Waits until this.done() is true.", "Polls this.done().", 3),
        ("Opens the file. Reads it.", "Reads a file.", 2),
        ("Sorts a.b by name", "Removes x.y.z", 1),
    ]
    file = tmp_path / "rated.jsonl"
    keys = ("reference", "candidate", "rating")
    file.write_text("".join(json.dumps(dict(zip(keys, pair, strict=True))) + "\n" for pair in pairs))
    learned = SimLLM(model_folder)
    references, candidates, _ = zip(*pairs, strict=True)
    scores = score_rated_pairs(registry.model_metric("simllm", learned), ratings.load(file))
    assert scores == pytest.approx(learned.score(candidates, references).values)
    assert scores[[0, 2]] == pytest.approx(
        SimLLM(model_folder, long="whole").score(candidates, references).values[[0, 2]]
    )
