"""A function that turns the calling process from root into an ordinary user."""

from __future__ import annotations

import os

_FIRST_FREE_USER = 1_500_000_000
_NOBODY = 65534


def drop_root_rights() -> None:
    """Turn this process from root into an ordinary user, because many limits do not apply to root.

    The new user id is derived from the process id, so that no other process or file belongs to this user. If
    the derived id cannot be used, the process becomes the user `nobody`.
    """
    os.setgroups([])
    for user in (_FIRST_FREE_USER + os.getpid(), _NOBODY):
        try:
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            return
        except OSError:
            continue
    raise SystemExit("simllm: the sandbox cannot give up the rights of root")
