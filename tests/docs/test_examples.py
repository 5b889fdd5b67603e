"""The worked examples run, and a metric can be added as documented."""

import json
import math
import os
import re
import runpy
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from simllm import metrics
from simllm.io import reading
from simllm.metrics import Example, table
from simllm.metrics.interface import UnavailableError
from simllm.metrics.text import words
from tests import command
from tests.conftest import ROOT, SHARED
from tests.docs.markdown_blocks import DATA, blocks

EXAMPLES = ROOT / "docs" / "examples"


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=ROOT, env=os.environ | environment,
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip


@pytest.fixture
def call(monkeypatch, capfd):
    """Return a function that runs an example in this process, which saves the seconds for its imports."""
    monkeypatch.chdir(ROOT)

    def called(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        status = 0
        try:
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        except SystemExit as ended:
            status = ended.code
        return subprocess.CompletedProcess(sys.argv, status, *capfd.readouterr())

    return called


@pytest.mark.slow
def test_train_on_your_code(call, tmp_path):
    done = call("train_on_your_code.py", "--quick", "--out", tmp_path / "own")
    assert done.returncode == 0, done.stderr
    assert "open the file" in done.stdout
    assert (tmp_path / "own" / "tuned" / "model" / "model.safetensors").is_file()


@pytest.mark.slow
def test_repeat_the_study_on_made_up_ratings(call, tmp_path):
    done = call("repeat_the_study.py", "--data", tmp_path, "--out", tmp_path / "report")
    assert done.returncode == 0, done.stderr
    assert "made-up ratings" in done.stderr
    assert (tmp_path / "report" / "report.html").is_file()


@pytest.mark.slow
def test_repeat_the_study_on_rated_sets(call, tmp_path):
    if not (SHARED / "data" / "rated").is_dir():
        pytest.skip(f"no rated sets in {SHARED / 'data' / 'rated'}")
    (tmp_path / "haque2022.jsonl").symlink_to(SHARED / "data" / "rated" / "haque2022.jsonl")
    arguments = ("--data", tmp_path, "--out", tmp_path / "report")
    done = call("repeat_the_study.py", *arguments, "--metrics", "simllm,jaccard")
    assert done.returncode == 0, done.stderr
    assert re.search(r"haque2022 +simllm +1 +0\.8", done.stdout)


PAGE = ROOT / "docs" / "adding-a-metric.md"


@pytest.mark.slow
def test_a_package_adds_a_metric(tmp_path):
    project = tomllib.loads(re.search(r"```toml\n(.*?)```", PAGE.read_text(), re.S)[1])
    code = next(block.code for block in blocks(PAGE) if "FunctionMetric" in block.code)
    (tmp_path / "my_metrics.py").write_text(code)
    described = tmp_path / "my_metrics-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: my-metrics\nVersion: 1.0\n")
    points = project["project"]["entry-points"]["simllm.metrics"]
    lines = [f"{name} = {value}" for name, value in points.items()]
    (described / "entry_points.txt").write_text("\n".join(["[simllm.metrics]", *lines, ""]))
    name = f"cider={DATA / 'references.txt'}"
    done = run(
        "-m", "simllm", "evaluate", "correlation", "--ratings", DATA / "ratings.jsonl",
        "--metrics", f"jaccard,cider,{name}", "-f", "json", PYTHONPATH=str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "cider is left out: name it as cider=CORPUS" in done.stderr
    assert [row["metric"] for row in json.loads(done.stdout)["rows"]] == ["jaccard", name]


def test_a_function_and_a_row_of_the_table_add_a_metric(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code, row = re.findall(r"```python title.*?\n(.*?)```", PAGE.read_text(), re.S)
    names = vars(words) | {"math": math, "Counter": Counter, "Path": Path, "reading": reading}
    names["UnavailableError"] = UnavailableError
    exec(code, names)
    monkeypatch.setattr(words, "load_cider", names["load_cider"], raising=False)
    (name, spec), = eval(f"{{{row}}}", vars(table)).items()  # fmt: skip
    monkeypatch.setitem(table.METRICS, name, spec)
    corpus = DATA / "references.txt"
    texts = [*corpus.read_text().splitlines()[:3], "zzz", ""]
    inside = metrics.load(f"cider={corpus}").score(list(map(Example, texts, [texts[0]] * len(texts))))
    outside = {}
    exec(next(block.code for block in blocks(PAGE) if "FunctionMetric" in block.code), outside)
    own = outside["cider"](corpus).score(list(map(Example, texts, [texts[0]] * len(texts))))
    assert inside.values == pytest.approx(own.values, abs=1e-9)
    assert inside.values[0] == pytest.approx(1)
    with pytest.raises(UnavailableError, match="name it as cider=CORPUS"):
        metrics.load("cider")


@pytest.mark.slow
def test_fine_tune_code_t5(tmp_path):
    """A tiny random T5 learns a little from mined items, and its edits are evaluated."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    function = "def f{}(x):\n    # TODO: return the sum\n    return x"
    rows = [
        {"id": str(n), "split": split, "language": "python", "comment": "# TODO: return the sum",
         "source": function.format(n), "reference": f"def f{n}(x):\n    return sum(x)"}
        for n, split in enumerate(["train"] * 8 + ["validation"] * 2 + ["test"] * 3)
    ]  # fmt: skip
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = [
        "<pad>",
        "</s>",
        "<unk>",
        *sorted(
            {word for row in rows for word in re.findall(r"\w+|[^\w\s]", row["source"] + row["reference"])}
        ),
    ]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(tmp_path / "tiny")
    config = T5Config(
        vocab_size=len(words),
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=1,
        num_heads=2,
        decoder_start_token_id=0,
    )
    T5ForConditionalGeneration(config).save_pretrained(tmp_path / "tiny")
    arguments = ("items.jsonl", "--model", "tiny", "--out", "t5", "--longest", "24", "--beams", "2")
    arguments = [tmp_path / word if word in ("items.jsonl", "tiny", "t5") else word for word in arguments]
    for epochs in ("1", "2"):  # the second run resumes
        done = run(EXAMPLES / "fine_tune_code_t5.py", *arguments, "--epochs", epochs)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "t5" / "model" / "model.safetensors").is_file()
    assert [json.loads(line)["id"] for line in (tmp_path / "t5" / "edits.jsonl").open()] == ["10", "11", "12"]
    done = command.run("evaluate", "edits", tmp_path / "t5" / "edits.jsonl", "--out", tmp_path / "r")
    assert done.returncode == 0, done.stderr
    assert "edits" in done.stdout
