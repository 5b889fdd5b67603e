"""The exception for bad input."""


class InputError(ValueError):
    """Bad input. The message is one line: which file, which line, what was expected.

    Commands print the message on standard error and exit with status 2.
    """
