"""Repair of programs by a language model, in conversations of several rounds; and summaries of code in the
same way.

The words of this package:

- An *item* is an incorrect program with tests, which the model repairs, or code that the model summarizes.
- A *round* is one request to the model and the model's reply. Rounds and attempts are numbered from 1.
- An *attempt* at an item is a series of rounds. The first accepted reply ends the attempt. An attempt is
  *open* if a reply or a verdict is missing; otherwise it is finished.
- A *run* makes several attempts at each item, and keeps settings, items, replies and results in a folder. The
  same command resumes a stopped run. A *replay* takes the replies from the records of an earlier run.
- An *endpoint* is the address of a server that offers the model.
- A *strategy* is the list of rounds of an attempt. A *part* is help that a round adds: "guidance" (a tutor's
  hint), "solution" (a description of a solution), "tests" (the failed tests) or "score" (of the last
  summary).
- A *judge* decides whether a reply is *accepted*: whether the program passes all tests, or a metric gives the
  summary at least the score `bar`. The *verdict* on a program is "AC" (accepted), "WA" (wrong answer), "CE"
  (does not compile), "NC" (the reply has no code) and so on.
- The *fix* is a known correct program. The *patch* changes the incorrect program into that of the last reply.
  The size of a change is its number of edits: the nodes of the syntax tree that it changes.
- *AVG* is the share of accepted attempts. *TOP-k* is pass@k: the probability that one of k attempts is
  accepted. *RPS* is the relative patch size, edits of the patch / nodes of the program. *RPSR* is the
  relative patch size ratio, edits of the patch / edits of the fix.
"""

from typing import TYPE_CHECKING, Any

from simllm.repair.settings import RunOptions

if TYPE_CHECKING:
    from simllm.repair.experiment import run

__all__ = ["RunOptions", "run"]


def __getattr__(name: str) -> Any:
    # Late, because `run` needs packages of the extra `repair`, and the options do not.
    if name == "run":
        from importlib import import_module

        return import_module("simllm.repair.experiment").run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
