"""The report of scored pairs: an HTML page that shows the texts and scores of one or several summarizers."""

from simllm.analysis.run_report.pairs_page import render_report
from simllm.analysis.run_report.scored_run import ScoredRun

__all__ = ["ScoredRun", "render_report"]
