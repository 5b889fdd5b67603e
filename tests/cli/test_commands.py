"""The command line: its output, and its errors for bad input."""

import gzip
import json
import os
import pty
import subprocess
import sys

import pytest

from simllm import SimLLM
from tests.command import process, run


@pytest.fixture
def files(tmp_path):
    (tmp_path / "c.txt").write_text("adds two lists\n\ngets\tthe name\n")
    (tmp_path / "r.txt").write_text("combines 2 arrays\nempty\nget name")
    rows = [{"pred": "adds two lists", "gold": "combines 2 arrays"}, {"pred": "", "gold": "empty"}]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_score_of_two_texts(model_folder):
    done = process("score", "adds two lists", "combines 2 arrays", "--model", model_folder)
    assert done.returncode == 0
    metric = SimLLM(model_folder)
    expected = metric.score(["adds two lists"], ["combines 2 arrays"]).values[0]
    assert done.stderr == f"simllm: 1 pair, mean raw score {expected:.4f}, {metric.signature}\n"
    header, row = done.stdout.splitlines()
    assert header == "score\tcandidate\treference"
    score, *texts = row.split("\t")
    assert texts == ["adds two lists", "combines 2 arrays"]
    assert float(score) == pytest.approx(expected, abs=1e-6)


def test_names_of_files_as_texts_give_a_warning(files, model_folder):
    done = run("score", files / "c.txt", files / "r.txt", "--model", model_folder)
    assert done.returncode == 0
    assert done.stderr.startswith(
        "simllm: warning: both texts are names of files, and the names themselves are scored;"
    )
    assert "warning" not in run("score", files / "c.txt", "some text", "--model", model_folder).stderr


def test_scores_of_two_files_as_json(files, model_folder):
    done = run("score", "-c", files / "c.txt", "-r", files / "r.txt", "-f", "json", "--model", model_folder)
    result = json.loads(done.stdout)
    assert result["pairs"] == 3
    assert result["empty"] == 1
    assert result["signature"].startswith("model:")
    assert [row["candidate"] for row in result["rows"]] == ["adds two lists", "", "gets\tthe name"]
    assert result["rows"][1]["score"] == 0
    assert result["mean"] == pytest.approx(sum(row["score"] for row in result["rows"]) / 3)


def test_scores_of_json_lines_written_to_a_file(files, model_folder):
    out = files / "scores.tsv"
    fields = ("--candidate-field", "pred", "--reference-field", "gold")
    done = run("score", "--jsonl", files / "p.jsonl", *fields, "-o", out, "--model", model_folder)
    assert (done.returncode, done.stdout) == (0, "")
    lines = out.read_text().splitlines()
    assert len(lines) == 3
    mean, signature = (float(lines[1].split("\t")[0]) + 0) / 2, SimLLM(model_folder).signature
    empty = "1 of 2 pairs have a text that is empty; they score 1 if both texts are equal, otherwise 0"
    facts = f"simllm: 2 pairs, mean raw score {mean:.4f}, {signature}\n"
    assert done.stderr == f"simllm: warning: {empty}\n{facts}"
    arguments = ("score", "--jsonl", files / "p.jsonl", *fields, "--model", model_folder, "-o", "-")
    done = run(*arguments, "-q")
    assert (done.stdout, done.stderr) == (out.read_text(), "")
    assert lines[2] == "0\t\tempty"
    assert not list(files.glob(".*"))


def test_ids_are_written_unchanged(files, model_folder):
    ids = [1234567.891011, 12345678901234567890, "x-1", None, ["a", 1]]
    rows = [{"candidate": "a", "reference": "a", "key": key} for key in ids]
    (files / "ids.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ("score", "--jsonl", files / "ids.jsonl", "--id-field", "key", "--model", model_folder)
    shown = [line.split("\t")[0] for line in run(*arguments).stdout.splitlines()[1:]]
    assert shown == ["1234567.891011", "12345678901234567890", "x-1", "null", '["a", 1]']
    assert [row["id"] for row in json.loads(run(*arguments, "-f", "json").stdout)["rows"]] == ids


def test_windows_line_ends_byte_order_mark_and_unicode_separators(files, model_folder):
    (files / "c.txt").write_bytes("\ufeffadds\u2028two\r\ngets it\r\n".encode())
    (files / "r.txt").write_bytes(b"adds two\ngets it\n")
    done = run("score", "-c", files / "c.txt", "-r", files / "r.txt", "--model", model_folder)
    scores = [float(line.split("\t")[0]) for line in done.stdout.splitlines()[1:]]
    assert scores == pytest.approx([1.0, 1.0], abs=1e-6)


def on_a_terminal(*arguments):
    """Run the command in a terminal of 60 columns and return its standard output."""
    import fcntl
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    subprocess.run(
        [sys.executable, "-m", "simllm", *map(str, arguments)],
        stdout=slave, stdin=slave, env=environment, timeout=120, check=True,
    )  # fmt: skip
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # on Linux, this means that the other end is closed
            part = b""
        if not part:
            os.close(master)
            return shown.decode().replace("\r\n", "\n")
        shown += part


def test_table_fits_the_terminal():
    shown = on_a_terminal("score", "adds two lists " * 9, "combines 2 arrays", "--metrics", "jaccard")
    header, rule, row, *rest = shown.splitlines()
    assert header.split() == ["jaccard", "candidate", "reference"]
    assert set(rule) == {"\u2500", " "}
    assert "\u2026" in row
    assert max(map(len, (header, rule, row))) <= 60
    assert any(line.startswith("signature of jaccard: jaccard|") for line in rest)


def test_output_may_be_a_link_or_a_pipe(tmp_path, model_folder):
    (tmp_path / "target").write_text("before")
    (tmp_path / "link").symlink_to("target")
    done = run("score", "a b", "a b", "-o", tmp_path / "link", "--overwrite", "--model", model_folder)
    assert done.returncode == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text().startswith("score\t")
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True)
    assert run("score", "a b", "a b", "-o", tmp_path / "pipe", "--model", model_folder).returncode == 0
    assert reader.communicate(timeout=60)[0].startswith("score\t")
    assert (tmp_path / "pipe").is_fifo()
    done = process("score", "a b", "a b", "-o", "/dev/stdout", "--metrics", "jaccard")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("jaccard\t")


@pytest.mark.slow
def test_output_is_safe_for_terminals_and_ascii_locales(tmp_path, model_folder):
    row = {"candidate": "\x1b[31mred \ud83d", "reference": "caf\u00e9"}
    (tmp_path / "p.jsonl").write_text(json.dumps(row))
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    arguments = ("score", "--jsonl", tmp_path / "p.jsonl", "-f", "text", "--model", model_folder)
    done = process(*arguments, env=environment)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "[31mred" in done.stdout


BAD = [
    (("score",), "expected either two texts, or -c FILE -r FILE, or --jsonl FILE"),
    (("score", "one"), "expected two texts, a candidate and a reference; got 1"),
    (("score", "one" * 100), "expected two texts, a candidate and a reference; got 1"),
    (
        ("score", "c.txt"),
        "c.txt: to read pairs from files, use --jsonl FILE, --table FILE, or -c FILE -r FILE",
    ),
    (("score", "a", "b", "-c", "c.txt"), "expected either two texts"),
    (("score", "-c", "c.txt"), "-c and -r go together"),
    (("score", "-c", "c.txt", "-r", "none.txt"), "none.txt: cannot be read (No such file or directory)"),
    (("score", "-c", "c.txt", "-r", "."), ".: cannot be read (Is a directory)"),
    (("score", "-c", "c.txt", "-r", "two.txt"), "c.txt has 3 lines but two.txt has 2"),
    (("score", "-c", "c.txt", "-r", "latin.txt"), "latin.txt, line 2: not UTF-8"),
    (("score", "-c", "c.txt", "-r", "empty.txt"), "empty.txt: empty; expected one text per line"),
    (
        ("score", "--jsonl", "p.jsonl"),
        'line 1: expected a text under "candidate"; it has pred, gold',
    ),
    (("score", "--jsonl", "c.txt"), "c.txt, line 1: not JSON"),
    (("score", "a", "b", "--model", "nowhere"), "nowhere: no such model folder"),
    (("score", "a", "b", "--pooling", "sum"), "pooling 'sum': expected one of cls, mean, max"),
    (("score", "a", "b", "-o", "no/such/file"), "no/such/file: cannot be written"),
    (("score", "a", "b", "-f", "xml"), "argument -f/--format: invalid choice: 'xml'"),
    ((), "the following arguments are required: COMMAND"),
    (("score", "-c", "c.txt", "-r", "c.txt", "-o", "c.txt"), "c.txt: would overwrite what is read"),
    (("frequencies", "c.txt", "-o", "c.txt"), "c.txt: would overwrite what is read"),
    (("compare", "-r", "r.txt", "-c", "c.txt", "r.txt", "-o", "r.txt"), "r.txt: would overwrite"),
    (("frequencies", "empty.txt", "-o", "t.json"), "empty.txt: empty; expected one text per line"),
    (("export", "-o", "no/such/place/model.onnx", "-q"), "no/such/place/model.onnx: cannot be written"),
    (("score", "--jsonl", "null.jsonl"), 'null.jsonl, line 1: expected a text under "candidate", not null'),
    (("compare", "-r", "r.txt", "-c", "c.txt"), "expected two or more different"),
    (("compare", "-r", "r.txt", "-c", "c.txt", "c.txt"), "c.txt: is named twice"),
    (("compare", "-r", "r.txt", "-c", "c.txt", "../{name}/c.txt"), "/c.txt: is named twice"),
    (("score", "-c", "one.txt", "-r", "c.txt"), "one.txt has 1 line but c.txt has 3"),
    (("score", "a", "b", "-o", ""), "argument -o/--output: expected a file name, not an empty text"),
    (
        ("score", "a", "b", "--device", "mps"),
        "device 'mps': cannot be used (an Apple GPU is not here, or this PyTorch does not support it)",
    ),
    (("score", "a", "b", "--device", "gpu"), "device 'gpu': cannot be used (no name of a device); expected"),
    (("score", "a", "b", "--mode", "plain"), "--mode: invalid choice: 'plain' (choose from 'exact', 'fast')"),
    (("score", "a", "b", "--on-long", "cut"), "argument --on-long: invalid choice: 'cut'"),
    (("score", "a", "b", "--scale", "x"), "invalid choice: 'x' (choose from 'raw', 'percentile')"),
    (
        ("score", "a", "b", "--frequencies", "table.json"),
        "frequencies go with a similarity of precision, rec",
    ),
    (("score", "-c", "c.txt", "-r", "r.txt", "--actors", "3"), "--actors goes with several files: --jsonl"),
    (("score", "--jsonl", "p.jsonl", "--address", "a"), "--address goes with several files: --jsonl 'PATT"),
    (("score", "a", "b", "--engine", "ray"), "--engine goes with several files: --jsonl 'PATTERN'"),
    (
        ("score", "-c", "c.txt", "-r", "r.txt", "--candidate-field", "id"),
        "--candidate-field goes with --jsonl",
    ),
    (("score", "a", "b", "--reference-field", "id"), "--reference-field goes with --jsonl FILE"),
    (("score", "a", "b", "--id-field", "id"), "--id-field goes with --jsonl FILE"),
    (("score", "--jsonl", "p.jsonl", "--source-field", "x"), "--source-field goes with metrics for code in"),
    (
        ("score", "-c", "c.txt", "-r", "r.txt", "--language", "python"),
        "--language goes with metrics for code",
    ),
    (("score", "a", "b", "--largest-tree", "5"), "--largest-tree goes with metrics for code in --metrics"),
    (("score", "a", "b", "--as-published"), "--as-published goes with metrics for code in --metrics"),
    (("score", "--jsonl", "*.jsonl", "--language", "java"), "--language goes with metrics for code in --met"),
    (("compare", "-r", "r.txt", "-c", "-", "-"), "-: standard input can be one of the files only"),
    (("evaluate", "--ratings", "p.jsonl", "-o", "p.jsonl"), "p.jsonl: would overwrite what is read"),
    (("evaluate", "contrast", "--triples", "p.jsonl", "-o", "p.jsonl"), "would overwrite what is read"),
    (("evaluate", "contrast", "--metrics", "jaccard", "--model", "m"), "--model goes with simllm"),
    (
        ("score", "a", "b", "--metrics", "jaccard,simllm=m", "--model", "m"),
        "--model goes with simllm or simllm-same in --metrics, without =FOLDER",
    ),
    (("evaluate", "robustness", "--summaries", "c.txt", "-o", "c.txt"), "would overwrite what is read"),
    (("evaluate", "robustness", "--examples", "-1"), "--examples: expected a number from 0, not -1"),
    (("score", "a", "b", "--similarity", "dot"), "expected one of cosine, inverse-euclidean, precision, rec"),
    (("score", "--jsonl", "deep.jsonl"), "deep.jsonl, line 1: JSON that is nested too deeply"),
    (
        ("score", "--jsonl", "deep.jsonl", "--id-field", "x"),
        "deep.jsonl, line 1: JSON that is nested too deeply",
    ),
    (
        ("score", "--jsonl", "nested.jsonl", "--id-field", "id"),
        'nested.jsonl, line 1: expected at most 100 levels of nesting under "id"',
    ),
    (("score", "--jsonl", "nested.jsonl", "--candidate-field", "id"), 'expected a text under "id", not list'),
    (("score", "--jsonl", "escaped.jsonl"), "escaped.jsonl, line 1: JSON that is nested too deeply"),
    (("score", "--jsonl", "keys.jsonl"), 'expected a text under "candidate"; it has k 0, k 1, k 2'),
    (("score", "a", "b", "-o", "loop"), "loop: cannot be written (Too many levels of symbolic links)"),
    (("compare", "-r", "loop", "-c", "c.txt", "r.txt"), "loop: cannot be read (Too many levels of symbol"),
    (("compare", "-r", "r.txt", "-c", "c.txt", "r.txt", "-o", "no/such/file"), "no/such/file: cannot be"),
    (("score", "a", "b", "--frequencies", "deep.jsonl", "--similarity", "f1"), "JSON that is nested too"),
    (("export", "-o", "/dev/null"), "/dev/null: expected a file"),
    (("score", "-c", "damaged.gz", "-r", "c.txt"), "damaged.gz: is damaged after line 0"),
    (("score", "--jsonl", "empty.jsonl"), "empty.jsonl, line 1: empty; expected a JSON object"),
    (("score", "a", "b", "-o", "/"), "/: cannot be written"),
    (("evaluate", "--ratings", "p.jsonl", "--metrics", "bleu, blue"), "metric 'blue': expected one of"),
    (("evaluate", "--ratings", "none.jsonl"), "none.jsonl: cannot be read"),
    (("evaluate", "--ratings", "p.jsonl"), 'p.jsonl, line 1: expected a number under "rating"'),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_gives_one_line_and_exit_status_2(files, arguments, message):
    (files / "one.txt").write_text("a\n")
    (files / "two.txt").write_text("a\nb\n")
    (files / "table.json").write_text('{"documents": 1, "of": {}}')
    (files / "latin.txt").write_bytes(b"a\ncaf\xe9\nb\n")
    (files / "empty.txt").write_text("")
    (files / "empty.jsonl").write_text("\n")
    (files / "null.jsonl").write_text('{"candidate": null, "reference": "a"}\n')
    (files / "deep.jsonl").write_text("[" * 100_000 + "\n")
    nested = f"{'[' * 300}{']' * 300}"
    (files / "nested.jsonl").write_text(f'{{"id": {nested}, "candidate": "a", "reference": "b"}}\n')
    (files / "escaped.jsonl").write_text(f'{{"id": {"[" * 900}{"]" * 900}, "text": "\\ud83d"}}\n')
    (files / "keys.jsonl").write_text(json.dumps({f"k\n{i}": 1 for i in range(1000)}))
    (files / "loop").symlink_to("loop")
    packed = gzip.compress(b"".join(b"line %d\n" % i for i in range(100)))
    (files / "damaged.gz").write_bytes(packed[:40] + b"\xff" * 40 + packed[80:])
    done = run(*(word.replace("{name}", files.name) for word in arguments), cwd=files)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("simllm: error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_nested_ids_are_written(files, model_folder):
    nested = f"{'[' * 100}1{']' * 100}"
    (files / "p.jsonl").write_text(f'{{"id": {nested}, "candidate": "a", "reference": "b"}}\n')
    arguments = ("score", "--jsonl", files / "p.jsonl", "--id-field", "id", "--model", model_folder)
    assert run(*arguments).stdout.splitlines()[1].startswith(f"{nested}\t")
    assert f'"id": {nested}' in run(*arguments, "-f", "json").stdout


def test_every_format_reads_invalid_utf8(files, model_folder):
    odd = "adds \udcff\ud800 two\0 lists"
    for format_ in ("text", "tsv", "json"):
        done = run("score", odd, "adds two lists", "-f", format_, "--model", model_folder)
        assert done.returncode == 0, done.stderr
        assert "\\udc" not in done.stdout
        assert "\ufffd" in (
            json.loads(done.stdout)["rows"][0]["candidate"] if format_ == "json" else done.stdout
        )
    for format_ in ("text", "json", "html"):
        done = run("explain", odd, "adds two lists", "-f", format_, "-o", files / format_)
        assert (done.returncode, done.stderr) == (0, "")


def test_failed_run_keeps_the_output_file(files, model_folder):
    out = files / "scores.tsv"
    out.write_text("before")
    done = run("score", "-c", files / "c.txt", "-r", "none.txt", "-o", out, "--model", model_folder)
    assert (done.returncode, out.read_text()) == (2, "before")


def test_warnings_go_to_stderr_and_can_be_silenced(model_folder):
    arguments = ("score", "returns the first value of the list " * 100, "b c", "--model", model_folder)
    assert run(*arguments, "-f", "json").stderr == "simllm: warning: 1 of 2 texts cut at 64 tokens\n"
    assert run(*arguments, "--quiet").stderr == ""


@pytest.mark.slow
def test_closed_output_pipe_is_no_error(files, model_folder):
    (files / "many.txt").write_text("adds two lists\n" * 50_000)
    command = f"{sys.executable} -m simllm score -c many.txt -r many.txt --model {model_folder} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=files, check=True)
    assert done.stdout == "score\tcandidate\treference\n"
    assert done.stderr == ""


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("score",),
        ("evaluate", "correlation"),
        ("compare",),
        ("explain",),
        ("info",),
        ("selftest",),
        ("frequencies",),
        ("export",),
    ],
)
def test_help_shows_examples(command):
    done = run(*command, "--help")
    assert done.returncode == 0
    assert "\n  simllm " in done.stdout.partition("example")[2]
