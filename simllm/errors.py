"""The exceptions for bad input and for incomplete results."""

from __future__ import annotations

from collections.abc import Mapping


class InputError(ValueError):
    """Error for bad input, such as a damaged file or an unknown option.

    The message is one line, which says where the error is (file and line) and what was expected. Commands
    print the message on standard error and exit with status 2.
    """


class OptionError(InputError):
    """Error in the options of a function: a wrong value, or options that do not go together.

    In the message, `{name}` stands for the option `name`: Python shows the name, and a command its flag.
    """

    def __init__(self, message: str, **values: object) -> None:
        """Take a message with places for options and for `values`."""
        self._message, self._values = message, values
        super().__init__(self.with_flags({}))

    def with_flags(self, flags: Mapping[str, str]) -> str:
        """Return the message with the flags of a command by the names of its options."""
        return self._message.format_map(_Names({**flags, **self._values}))


class IncompleteError(Exception):
    """Error for a result that is not complete, because a server stopped answering for example.

    What is there was kept, and the same command goes on from there. Commands exit with status 1.
    """


class _Names(dict[str, object]):
    def __missing__(self, name: str) -> str:
        return name
