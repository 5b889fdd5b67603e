"""The short model card that a training run writes beside its model."""

from __future__ import annotations

from typing import Any


def training_card(stage: str, facts: dict[str, Any]) -> str:
    """Format the short model card that a training run writes.

    Args:
        stage: A sentence that names the stage of training, without the full stop, such as "Distilled from
            larger sentence encoders".
        facts: Names and values that describe the run, for a table in the card. Values that are dictionaries
            are left out.

    Returns:
        The card in Markdown.
    """
    rows = "\n".join(
        f"| {key.replace('_', ' ')} | {value} |"
        for key, value in facts.items()
        if not isinstance(value, dict)
    )
    return (
        "---\nlibrary_name: simllm\ntags: [sentence-similarity, code-summarization]\n---\n"
        f"# A simllm encoder\n\n{stage}. Scores pairs of code summaries.\n\n"
        f"| | |\n|---|---|\n{rows}\n"
    )
