"""Repair: a model mends a program or a summary, is told what is wrong, and tries again."""

from simllm.repair.repair_api import run

__all__ = ["run"]
