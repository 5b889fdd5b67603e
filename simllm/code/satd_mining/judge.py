"""The judge: a language model that is asked whether a repayment is real, and its answers."""

from __future__ import annotations

from simllm.code.satd_mining.repayments import Repayment
from simllm.llm.answers import read_label
from simllm.llm.reply import Reply
from simllm.llm.session import Question

VERDICTS = ("yes", "no", "unclear", "failed")
_PROMPT = """\
A commit deletes a comment in which developers admit a shortcoming of their {language} code.
Does the commit also change the code so that the shortcoming is gone, as the comment asks?
Begin your answer with "yes" or "no".

The comment:
{comment}

The function before the commit:
{source}

The function after the commit:
{reference}
"""


def verdict(reply: Reply) -> str:
    """Return one of `VERDICTS`: the label that the model's answer names, or "unclear", or "failed"."""
    return "failed" if reply.text is None else read_label(reply.text, ("yes", "no")) or "unclear"


def question(repayment: Repayment) -> Question:
    """Return the question about a repayment; equal questions share their answer."""
    prompt = _PROMPT.format(
        language=repayment.language,
        comment=repayment.comment,
        source=repayment.source,
        reference=repayment.reference,
    )
    return Question(prompt)
