"""Texts, names and labels from data are never run as HTML, script or LaTeX in any report."""

import json
import re

import pytest

from simllm.cli.main import main
from simllm.io.tables import escape_latex
from tests.browser import needs_browser, visit

HOSTILE = (
    "x'\"`--></title></style></pre></svg></script><script>alert('script')</script>"
    "<img src=x onerror=alert('image')><svg onload=alert('svg')></svg>"
    "<a href=javascript:alert(1)>{{ 7 * 7 }}{% raw %}</a>"
    r"\input{/etc/passwd}\write18{ls}%$&#_^^5cinput ~"
)
# What a file name can hold: no slash.
NAME = "<img src=x onerror=alert('name')>{{ 7 * 7 }}&'\"_$^%#\\input"


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """The current folder, with data of all kinds in which every text is hostile."""
    monkeypatch.chdir(tmp_path)

    def write(name, rows):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    texts = [f"{HOSTILE} {word}" for word in ("reads", "writes", "opens", "closes", "sorts")]
    pairs = [
        {
            "id": text, "reference": text, "candidate": texts[n - 1], "ratings": [n, n, 3],
            "system": text, "language": text, "group": HOSTILE, "<script>alert('field')</script>": text,
        }
        for n, text in enumerate(texts)
    ]  # fmt: skip
    write(f"{NAME}.jsonl", pairs)
    for column in ("reference", "candidate"):
        (tmp_path / f"{NAME}-{column}.txt").write_text("".join(f"{pair[column]}\n" for pair in pairs))
    code = [f"def f(a):\n    # {text}\n    return a + {n}\n" for n, text in enumerate(texts)]
    edits = [
        {"id": text, "source": code[n], "reference": code[n - 1], "reply": code[n - 2], "language": "python"}
        for n, text in enumerate(texts)
    ]
    write(f"{NAME}-edits.jsonl", edits)
    labels = [
        {
            "item": text, "gold": HOSTILE if n % 2 else "no", "predicted": HOSTILE if n % 3 else "no",
            "classifier": f"{HOSTILE} {c}", "suite": f"{HOSTILE} {n % 2}", "data_set": HOSTILE,
        }
        for c in "ab"
        for n, text in enumerate(texts)
    ]  # fmt: skip
    write(f"{NAME}-labels.jsonl", labels)
    (tmp_path / "about.toml").write_text(f"model = {json.dumps(HOSTILE)}\n")
    results = [
        {"id": text, "original": [9, 10], "transformed": [n, 10], "model": HOSTILE, "group": text}
        for n, text in enumerate(texts)
    ]
    write("results.jsonl", results)
    return tmp_path


GROUPS = "<script>alert('field')</script>,language"
COMMANDS = {
    "score": [
        "score", "--jsonl", f"{NAME}.jsonl", "--id-field", "id", "--report", "page.html",
        "--group-by", GROUPS,
    ],
    "compare": [
        "compare", "-r", f"{NAME}-reference.txt", "-c", f"{NAME}-candidate.txt", f"{NAME}-reference.txt",
        "--report", "page.html", "-f", "latex", "-o", "tables.tex",
    ],
    "explain": ["explain", HOSTILE[40:], f"{HOSTILE[40:]} and more", "-f", "html", "-o", "page.html"],
    "study": ["evaluate", "study", "--ratings", f"{NAME}.jsonl", "--metrics", "jaccard,chrf", "--out", "out"],
    "edits": [
        "evaluate", "edits", f"{NAME}-edits.jsonl", "--metrics", "exact-match,lemod", "--out", "out",
    ],
    "classifiers": [
        "evaluate", "classifiers", f"{NAME}-labels.jsonl", "--positive", HOSTILE, "--groups", "suite",
        "--about", "about.toml", "--out", "out",
    ],
    "metamorphic": ["evaluate", "metamorphic", "--recorded", "results.jsonl", "--out", "out"],
}  # fmt: skip


def check_files(folder):
    """Check the pages of a report in the browser, and its LaTeX tables as text."""
    pages = sorted(folder.rglob("*.html"))
    assert pages
    for page in pages:
        text = page.read_text()
        assert "&lt;" in text or r"\u003c" in text
        assert "<img src=x" not in text
        with visit(page.as_uri()) as shown:
            for part in shown.page.locator("summary, th button").all():  # what scripts draw later
                if part.is_visible():
                    part.click()
            assert shown.alerts == []
            assert shown.errors == []
    for table in folder.rglob("*.tex"):
        lines = [line for line in table.read_text().splitlines() if not line.startswith("%")]
        assert not re.search(r"\\(input|write)(?![a-z])|\^\^|(?<!\\)[#~]", "\n".join(lines))


@needs_browser
@pytest.mark.parametrize("command", COMMANDS)
def test_no_report_runs_what_its_data_say(command, hostile, model_folder, capsys):
    models = ["--model", str(model_folder)] if command in ("score", "compare", "explain") else []
    assert main([*COMMANDS[command], *models]) in (0, 1), capsys.readouterr().err
    check_files(hostile)


def test_latex_gets_no_commands_and_no_control_characters():
    written = escape_latex("a\x00b\x1b\x7f\x85c\n\\input{x}%^^41 $#&_~")
    expected = (
        r"ab c \textbackslash{}input\{x\}\%\textasciicircum{}\textasciicircum{}41 \$\#\&\_\textasciitilde{}"
    )
    assert written == expected


@needs_browser
def test_no_corpus_report_runs_what_its_sources_say(hostile):
    from train.corpus import build
    from train.corpus.config import CorpusConfig

    sources = hostile / NAME
    sources.mkdir()
    functions = [
        f"def f{n}(a):\n    '''Return the {word} of all the lists in the file.'''\n    return a\n"
        for n, word in enumerate("one two three four five six seven eight nine ten".split() * 4)
    ]
    (sources / f"{NAME}.py").write_text("\n".join(functions))
    build.build(CorpusConfig(sources=(str(sources),)), hostile / "corpus")
    check_files(hostile / "corpus")
