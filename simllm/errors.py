"""The exception for bad input."""


class InputError(ValueError):
    """Error for bad input, such as a damaged file or an unknown option.

    The message is one line, which says where the error is (file and line) and what was expected. Commands
    print the message on standard error and exit with status 2.
    """
