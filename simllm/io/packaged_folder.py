"""Search for folders that come with simllm, such as its default model.

The folders are in the installed package, or else in the source checkout.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from simllm.errors import InputError


def find_packaged(installed_name: str, in_checkout: str, content: str) -> Path:
    """Return the path of a folder that comes with simllm.

    The folder is looked for in the package `simllm` first, and then in the source checkout.

    Args:
        installed_name: The folder's name in the package.
        in_checkout: The folder's path, relative to the top folder of the checkout.
        content: The content of the folder in a few words, such as "default model", for the error message.

    Raises:
        InputError: Neither the package nor the checkout has the folder.
    """
    package = Path(str(resources.files("simllm")))
    installed, checkout = package / installed_name, package.parent / in_checkout
    for folder in (installed, checkout):
        if folder.is_dir():
            return folder
    raise InputError(f"no {content} in {installed} or {checkout}")
