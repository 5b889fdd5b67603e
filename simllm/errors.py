"""The exception for bad input, and the message about a missing package."""


class InputError(ValueError):
    """Error for bad input, such as a damaged file or an unknown option.

    The message is one line, which says where the error is (file and line) and what was expected. Commands
    print the message on standard error and exit with status 2.
    """


def missing_package(package: str | None, extra: str) -> str:
    """Return the message for a package that is not installed, with the command that installs it.

    simllm cannot be installed from PyPI. Therefore the command only works in a checkout (a copy of the
    repository), and the message says so.

    Args:
        package: The name of the package, often taken from `ImportError.name`, which may be None.
        extra: The optional dependency group of simllm that contains the package, such as "eval".
    """
    return f"{package} is not installed; in a checkout of simllm, run pip install '.[{extra}]'"
