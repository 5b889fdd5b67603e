"""The folder of the data sets, and its placeholder `${data}` in configurations."""

from __future__ import annotations

import os
from typing import Any

from train.runtime.map_nested_texts import map_texts


def data_root() -> str:
    """Return the folder of the data sets: the value of the environment variable `SIMLLM_DATA`, or "data"."""
    return os.environ.get("SIMLLM_DATA") or "data"


def hide_data_root(values: Any) -> Any:
    """Replace the data folder at the start of paths by the placeholder `${data}`.

    Configurations that are stored with a model then do not depend on where the data folder was.

    Args:
        values: Nested dictionaries, lists and tuples of configuration values.

    Returns:
        A copy of the values. For example, "data/sts/a.jsonl" becomes "${data}/sts/a.jsonl" if the data folder
        is "data".
    """
    root = f"{data_root()}/"
    return map_texts(
        values, lambda text: "${data}/" + text.removeprefix(root) if text.startswith(root) else text
    )
