"""The report of scored pairs: an HTML page that shows the texts and scores of one or several systems.

Terms, in addition to those of `simllm.analysis`:

- *Pair i* is reference i with its candidates, one from each system.
- A *column* is a name with n scores. With a single system, each column is a metric, and the first one is the
  main metric. With several systems, each column is a system, scored by simllm's learned metric.
- A pair is *changed* if its texts are similar but probably differ in meaning. An *explained* pair is a
  changed pair whose changing words were searched for.
- A *field* is a key in the user's file, such as "language". Pairs with equal values form a *group*.
"""

from simllm.analysis.score_report.page import render_report
from simllm.analysis.score_report.pairs import ScoredPairs

__all__ = ["ScoredPairs", "render_report"]
