"""The model folder that comes with simllm: where it is."""

from __future__ import annotations

from pathlib import Path

from simllm.io.packaged_folder import find_packaged


def default_model() -> Path:
    """Return the path of the model folder that comes with simllm.

    The folder is in the installed package or in the source checkout.

    Raises:
        InputError: Neither the package nor the checkout has a model folder.
    """
    return find_packaged("default_model", "checkpoints/default", "default model")
