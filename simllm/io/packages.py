"""Optional packages of simllm, what needs Linux, and folders of the installed package.

The optional packages form groups, called extras, such as `eval`. The error about a missing one has the
command that installs it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from platform import platform, python_version, system

import simllm
from simllm.errors import InputError


def require_eval_extra() -> contextlib.AbstractContextManager[None]:
    """Turn a failed import in a `with` block into the advice to install the packages for evaluation."""
    return _require_extra("eval")


def require_code_extra() -> contextlib.AbstractContextManager[None]:
    """Turn a failed import in a `with` block into the advice to install the packages for analysing code."""
    return _require_extra("code")


def require_repair_extra() -> contextlib.AbstractContextManager[None]:
    """Turn a failed import in a `with` block into the advice to install the packages for `simllm repair`."""
    return _require_extra("repair")


def require_llm_extra() -> contextlib.AbstractContextManager[None]:
    """Turn a failed import in a `with` block into the advice to install the packages for prompts."""
    return _require_extra("llm")


def require_onnx_extra() -> contextlib.AbstractContextManager[None]:
    """Turn a failed import in a `with` block into the advice to install the packages for the export."""
    return _require_extra("onnx")


def require_serve_extra() -> contextlib.AbstractContextManager[None]:
    """Turn a failed import in a `with` block into the advice to install the packages for `simllm serve`."""
    return _require_extra("serve")


def require_torch_extra() -> contextlib.AbstractContextManager[None]:
    """Turn a failed import in a `with` block into the advice to install torch."""
    return _require_extra("torch")


@contextlib.contextmanager
def _require_extra(extra: str) -> Iterator[None]:
    """Raise InputError with the name of the extra if an import in the `with` block fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(missing_package(error.name, extra)) from None


def is_installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    return find_spec(package) is not None


def missing_package(package: str | None, extra: str) -> str:
    """Return the message for a package of an extra that is not installed; None if its name is unknown."""
    # simllm is not on PyPI, so that the command works in a checkout (a copy of the repository) only.
    return f"{package} is not installed; in a checkout of simllm, run pip install '.[{extra}]'"


def require_linux(what: str, or_macos: bool = False) -> None:
    """Raise InputError if this is not Linux; with `or_macos`, macOS is allowed, too."""
    if sys.platform != "linux" and not (or_macos and sys.platform == "darwin"):
        systems = "Linux or macOS" if or_macos else "Linux"
        raise InputError(f"{what} needs {systems}, and this is {system()}; on Windows, WSL is a Linux")


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of simllm, Python, the operating system ("system") and the installed ones of
    `libraries`.
    """
    found = {"simllm": simllm.__version__, "python": python_version(), "system": platform()}
    for name in libraries:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


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


def default_model() -> Path:
    """Return the path of the model folder that comes with simllm.

    The folder is in the installed package or in the source checkout.

    Raises:
        InputError: Neither the package nor the checkout has a model folder.
    """
    return find_packaged("default_model", "checkpoints/default", "default model")
