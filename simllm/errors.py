"""The one exception a user of simllm is meant to read."""


class InputError(ValueError):
    """Bad input: one line that says what is wrong, where, and what was expected.

    The command line prints it alone and exits with status 2.
    """
