import json
import os
import subprocess
import sys

import pytest

from simllm.evaluation import contrast
from simllm.metrics.text import baseline


def run(*arguments, cache):
    command = [sys.executable, "-m", "simllm", "evaluate", "contrast", *map(str, arguments)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environment)


def test_word_overlap_gets_half_of_the_balanced_triples_and_no_adversarial_one():
    triples = contrast.cleaned(contrast.load())
    won = contrast.wins(baseline("jaccard"), triples)
    found = contrast.by(triples.forms, won)
    assert found["balanced"] == pytest.approx(0.5, abs=0.05)
    assert found["adversarial"] < 0.05


ROWS = [
    ("opens the file", "opens the named file", "closes the file", "verb", "balanced"),
    ("opens the file", "closes the file", "opens the file", "verb", "adversarial"),
    ("adds one", "adds 1", "adds two", "number", "balanced"),
]


def test_the_command_gives_accuracy_overall_by_form_and_by_kind(tmp_path):
    """Jaccard: 3/4 against 1/2 is won, 1/2 against 1 is lost, 1/3 against 1/3 is a tie."""
    fields = ("reference", "rewording", "change", "kind", "form")
    file = tmp_path / "triples.jsonl"
    file.write_text("".join(json.dumps(dict(zip(fields, row, strict=True))) + "\n" for row in ROWS))
    metrics = "jaccard,word-vectors,column=use"
    done = run("--triples", file, "--metrics", metrics, "-f", "json", cache=tmp_path)
    result = json.loads(done.stdout)
    expected = {"all": 0.5, "balanced": 0.75, "adversarial": 0, "verb": 0.5, "number": 0.5}
    assert result["triples"] == 3
    assert result["rows"] == [{"metric": name, **expected} for name in ("word overlap", "jaccard")]
    assert result["without word-vectors"] == "name it as word-vectors=CORPUS"
    assert "column=use is left out: a column holds the scores of rated pairs" in done.stderr
