"""The report of scored pairs: an HTML page that shows the texts and scores of one or several summarizers."""

from simllm.analysis.score_report.pairs_page import render_report
from simllm.analysis.score_report.scored_pairs import ScoredPairs

__all__ = ["ScoredPairs", "render_report"]
