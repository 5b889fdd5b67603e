import json

import pytest

from train.pretrain import perplexity_plot


@pytest.fixture
def log(tmp_path):
    (tmp_path / "some-run").mkdir()
    file = tmp_path / "some-run" / "log.jsonl"
    losses = [6.0, None, 4.2, 4.0]  # all updates before the second line were skipped
    lines = [
        {"update": 10 * i, "train_loss": loss, "test_perplexity": 400.0 - 90 * i}
        for i, loss in enumerate(losses, 1)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_a_figure_of_two_runs(call, log, tmp_path):
    out = tmp_path / "perplexity.svg"
    done = call(perplexity_plot, log, log, "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    drawn = out.read_text()
    assert "<svg" in drawn
    assert drawn.count(">some-run, test<") == 2
    assert ">40.0 <" in drawn


@pytest.mark.parametrize(
    ("content", "out", "message"),
    [
        ('{"update": 1}\n', "a.svg", "not the log of a pretraining run"),
        ("", "a.svg", "not the log of a pretraining run"),
        (None, "a.unknown", "cannot be drawn"),
        (None, "none/a.svg", "no such folder"),
    ],
)
def test_bad_input_gets_one_clear_line(call, log, tmp_path, content, out, message):
    if content is not None:
        log.write_text(content)
    done = call(perplexity_plot, log, "-o", tmp_path / out)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
