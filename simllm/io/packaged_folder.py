"""Search for folders that come with simllm, such as its default model."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from simllm.errors import InputError


def find_packaged(installed_name: str, in_checkout: str, content: str) -> Path:
    """Find a folder in the installed package, or else in the source checkout.

    `in_checkout` is relative to the top folder of the checkout. `content` names the folder in the error
    message, such as "default model".
    """
    package = Path(str(resources.files("simllm")))
    installed, checkout = package / installed_name, package.parent / in_checkout
    # The wheel has copies of folders that lie elsewhere in the checkout.
    for folder in (installed, checkout):
        if folder.is_dir():
            return folder
    raise InputError(f"no {content} in {installed} or {checkout}")
