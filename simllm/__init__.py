"""simllm: does this code summary say the same as the reference?"""

from __future__ import annotations

__version__ = "0.1.0"
