"""Text and JSON files that are odd, damaged or hostile: one line says what was expected."""

import gzip
import json

import pytest

from simllm.errors import InputError
from simllm.io import reading
from simllm.io.reading import read_json

PAIR = '{"candidate": "reads it", "reference": "loads it"}'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"[{PAIR}]", "line 1: is a JSON array; expected one object on each line"),
        (f"[\n  {PAIR}\n]\n", "line 1: is a JSON array; expected one object on each line"),
        (
            "{\n",
            r"line 1: not JSON \(Expecting property name.*: column 2\); expected one object on each line",
        ),
        (
            "{'candidate': 'x'}",
            r"line 1: not JSON \(Expecting property name enclosed in double quotes: column 2",
        ),
        (f'{PAIR}\n{{"id": {"7" * 4301}}}', r"line 2: not JSON \(a number has more than 4,300 digits\)"),
        (f"{PAIR}\n\n", "line 2: empty; expected a JSON object"),
        (f"{PAIR}\n12", "line 2: expected a JSON object"),
        ('{"id": 1, "rows": [{"x": 1, "y": 2, "x": 3}]}', 'line 1: the key "x" stands twice in an object'),
        ('{"id": ' + "[" * 60_000, "line 1: JSON that is nested too deeply"),
    ],
)
def test_lines_that_are_no_json_objects(tmp_path, content, message):
    file = tmp_path / "pairs.jsonl"
    file.write_text(content)
    with pytest.raises(InputError, match=message):
        list(reading.objects(file))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[1]", "is a JSON array; expected one JSON object"),
        (b'{"a": 1, "a": 2}', 'the key "a" stands twice'),
        (b"\xff\xfe{\0}\0", "not UTF-8"),
        (b"{" * 100_000, "not JSON"),
        (b'{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_files_that_are_no_json_object(tmp_path, content, message):
    file = tmp_path / "one.json"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_json(file)


def test_a_byte_order_mark_and_lone_surrogates_are_read(tmp_path):
    file = tmp_path / "one.json"
    file.write_bytes("\ufeff".encode() + b'{"a": "\\ud800"}')
    assert read_json(file) == {"a": "\ufffd"}
    assert [row for _, row in reading.objects(file)] == [{"a": "\ufffd"}]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_named(tmp_path, encoding):
    file = tmp_path / "texts.txt"
    file.write_bytes("reads it\nloads it\n".encode(encoding))
    with pytest.raises(InputError, match=r"texts\.txt: is UTF-16 or binary; expected text in UTF-8"):
        list(reading.read_lines(file))


@pytest.mark.parametrize("name", ["long.txt", "long.txt.gz"])
def test_a_line_without_end_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.setattr(reading, "LONGEST_LINE", 1 << 20)
    file = tmp_path / name
    content = b"short\n" + b"x" * (5 << 20)
    file.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with pytest.raises(InputError, match="line 2: has more than 1 MiB"):
        list(reading.read_lines(file))
    file.write_bytes(gzip.compress(content[: 1 << 20]) if name.endswith("gz") else content[: 1 << 20])
    assert len(list(reading.read_lines(file))) == 2


def test_infinities_and_nan_are_no_ratings(tmp_path):
    from simllm.evaluation import ratings

    for value in ("NaN", "Infinity", "-Infinity", "1e999"):
        file = tmp_path / "ratings.jsonl"
        file.write_text(f'{{"reference": "a", "candidate": "b", "rating": {value}}}\n' * 3)
        with pytest.raises(InputError, match='line 1: expected a number under "rating"'):
            ratings.load(file)
    assert json.loads("1e999") == float("inf")


@pytest.mark.parametrize(("content", "message"), [(b"caf\xe9", "not UTF-8"), (None, "has more than 64 MiB")])
def test_whole_texts_that_are_odd(tmp_path, content, message):
    file = tmp_path / "text"
    file.symlink_to("/dev/zero") if content is None else file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        reading.whole_text(file)


def test_a_whole_text_loses_its_byte_order_mark(tmp_path):
    (tmp_path / "text").write_bytes(b"\xef\xbb\xbfmodel = 1\r\n")
    assert reading.whole_text(tmp_path / "text") == "model = 1\r\n"
