"""The report of scored pairs: one HTML page to look at the scores of one system or of several."""

from simllm.analysis.run_report.pairs_page import render_report
from simllm.analysis.run_report.scored_run import ScoredRun

__all__ = ["ScoredRun", "render_report"]
