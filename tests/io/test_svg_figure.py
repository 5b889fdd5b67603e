"""Figures do not depend on the user's settings of matplotlib."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DRAW = """
from simllm.io.svg_figure import Figure, style, svg_element
with style():
    figure = Figure(figsize=(3, 2), layout="constrained")
    axes = figure.subplots()
    axes.plot([1, 2, 3], [2, 1, 2], label="$a_b$ & <c>")
    axes.legend()
print(svg_element(figure))
"""
SETTINGS = """
text.usetex: True
font.family: a font that nobody has
font.size: 40
lines.linewidth: 9
figure.dpi: 7
savefig.bbox: tight
axes.facecolor: red
axes.labelsize: not a size
svg.fonttype: path
no.such.key: 1
"""


def draw(folder, **environment):
    done = subprocess.run(
        [sys.executable, "-c", DRAW], cwd=folder, env={**os.environ, **environment},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
def test_settings_of_the_user_change_no_figure(tmp_path):
    for name in ("plain", "set"):
        (tmp_path / name).mkdir()
    (tmp_path / "set" / "matplotlibrc").write_text(SETTINGS)
    plain = draw(tmp_path / "plain")
    assert "<svg" in plain
    assert draw(tmp_path / "set") == plain
    assert draw(tmp_path / "set", MPLBACKEND="no such backend") == plain
    nowhere = {"HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none", "MPLCONFIGDIR": "/proc/none"}
    assert draw(tmp_path / "plain", **nowhere) == plain


def test_all_drawing_code_takes_matplotlib_from_one_module():
    checkout = Path(__file__).parents[2]
    sources = [path for top in ("simllm", "train") for path in (checkout / top).rglob("*.py")]
    using = [
        path.name
        for path in sources
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip().startswith(("import matplotlib", "from matplotlib"))
    ]
    assert set(using) == {"svg_figure.py", "perplexity_plot.py"}
