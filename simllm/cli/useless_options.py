"""Refusal of options that would have no effect beside the other options."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from simllm.errors import InputError


def refuse(options: argparse.Namespace, defaults: Mapping[str, Any], reason: str) -> None:
    """Refuse options that differ from their `defaults`; `reason` ends the message, as in "goes with --jsonl
    FILE".
    """
    for name, default in defaults.items():
        if getattr(options, name) != default:
            raise InputError(f"--{name.replace('_', '-')} {reason}")
