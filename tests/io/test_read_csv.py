"""Reading of CSV files as spreadsheets, pandas and databases write them."""

import gzip

import pytest

from simllm.errors import InputError
from simllm.io import reading
from tests.command import run

KNOWN = ("item", "gold", "predicted")
HEADER = ["item", "gold", "predicted"]
ROWS = [["1", "cat", "dog"], ["2", "dog", "dog"]]


def read(file, data):
    file.write_bytes(data)
    names, rows = reading.read_csv(file, KNOWN)
    return names, [values for _, values in rows]


@pytest.mark.parametrize(
    "data",
    [
        b"item,gold,predicted\n1,cat,dog\n2,dog,dog\n",
        b"sep=;\r\nitem;gold;predicted\r\n1;cat;dog\r\n2;dog;dog\r\n",
        b'"sep=\t"\nitem\tgold\tpredicted\n1\tcat\tdog\n2\tdog\tdog\n',
        b"\xef\xbb\xbfSEP=,\nitem,gold,predicted\n1,cat,dog\n2,dog,dog",
        b"\xef\xbb\xbfitem gold predicted\n1 cat dog\n2 dog dog\n",
        b"item,gold,predicted\r1,cat,dog\r2,dog,dog\r",
        b"\n\nitem,gold,predicted\n\n1,cat,dog\n\n2,dog,dog\n\n",
        b"item,gold,predicted,,\n1,cat,dog,,\n2,dog,dog,,\n,,,,\n",
        b'"item";"gold";"predicted"\n"1";"cat";"dog"\n"2";"dog";"dog"\n',
    ],
)
def test_files_of_spreadsheets(tmp_path, data):
    assert read(tmp_path / "a.csv", data) == (HEADER, ROWS)


def test_a_row_of_empty_texts_is_kept_unless_it_ends_the_table(tmp_path):
    """Rows of two tables belong together by their number."""
    data = b"item,gold,predicted\n1,cat,dog\n,,\n\n , ,,\n2,dog,dog\n,,\n,,\n"
    assert read(tmp_path / "a.csv", data) == (HEADER, [ROWS[0], [""] * 3, [""] * 3, ROWS[1]])


def test_line_breaks_and_separators_in_quotation_marks(tmp_path):
    for end in (b"\n", b"\r\n", b"\r"):
        data = b'item,gold,predicted\n1,"a,b","c\nd ""e"""\n'.replace(b"\n", end)
        assert read(tmp_path / "a.csv", data)[1] == [["1", "a,b", 'c\nd "e"']]


def test_the_unnamed_index_of_pandas_is_kept_and_compressed_files_are_read(tmp_path):
    file = tmp_path / "a.csv.gz"
    assert read(file, gzip.compress(b",item,gold\n0,1,cat\n")) == (["", "item", "gold"], [["0", "1", "cat"]])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"item,gold,gold\n1,a,b\n", "a.csv: two columns are called gold"),
        (b"item,,gold,,x\n1,a,b,c,d\n", "a.csv: column 4 of the header has no name"),
        (b"item,gold\n1,a\n2\n", "a.csv, row 2: 1 values for 2 columns"),
        (b"item,gold\n1,a\n2,b,c\n", "a.csv, row 2: 3 values for 2 columns"),
        (b'item,gold\n1,a\n2,"b\n3,c\n', "a.csv, row 2: not CSV (a quotation mark is not closed)"),
        (b'item,gold\n1,a\n,\n"2,b\n', "a.csv, row 3: not CSV (a quotation mark is not closed)"),
        (b'item,gold\n1,"a"b\n', "a.csv, row 1: not CSV (text after a closing quotation mark)"),
        (b'item,"gold\n1,a\n', "a.csv, the header: not CSV (a quotation mark is not closed)"),
        (b"item,gold\n1,a\0b\n", "a.csv, line 2: has a NUL byte; expected a CSV file in UTF-8"),
        ("item,gold\n1,a\n".encode("utf-16"), "a.csv: is UTF-16 or binary; expected text in UTF-8"),
        (b"item,gold\n1," + b"x" * 200_000, "a value of more than 131,072 characters"),
    ],
)
def test_a_damaged_file_is_named_with_its_row(tmp_path, data, message):
    with pytest.raises(InputError) as error:
        read(tmp_path / "a.csv", data)
    assert message in str(error.value)


def test_split_reads_files_of_old_macs(tmp_path):
    rows = "".join(f"t{i},{'xy'[i % 2]}\r" for i in range(50))
    (tmp_path / "a.csv").write_bytes(f"item,gold\r{rows}".encode())
    done = run("split", "a.csv", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "simllm: 50 items: train 40, test 10\n")
