"""simllm: a learned metric that compares summaries of source code with reference summaries.

Examples:
    >>> from simllm import SimLLM
    >>> scores = SimLLM().score(["adds two lists"], ["combines 2 arrays"])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simllm.analysis.frameworks import assert_same_meaning as assert_same_meaning
    from simllm.errors import InputError as InputError
    from simllm.metric import SimLLM as SimLLM
    from simllm.scoring.scores import Scores as Scores
    from simllm.text_cleaning import clean as clean

__version__ = "0.2.0"

# Names are imported on first use, because torch, if it is installed, takes over a second to import.
_MODULES = {
    "InputError": "simllm.errors",
    "Scores": "simllm.scoring.scores",
    "SimLLM": "simllm.metric",
    "assert_same_meaning": "simllm.analysis.frameworks",
    "clean": "simllm.text_cleaning",
}
__all__ = ["InputError", "Scores", "SimLLM", "assert_same_meaning", "clean"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'simllm' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
