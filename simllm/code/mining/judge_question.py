"""Questions to a language model about whether a change of code repays a technical debt.

The debt was admitted in a comment such as "TODO: handle errors", which the change deletes.
"""

from __future__ import annotations

import hashlib
import json
import re

from simllm.code.mining.debt_repayments import Repayment
from simllm.code.mining.judge_endpoint import ChatEndpoint

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


def question_hash(endpoint: ChatEndpoint, repayment: Repayment) -> str:
    """Return a hash that identifies a question to a model, so that the answer can be stored under this hash.

    The question is whether a change of code repays a technical debt. The hash depends on the server's
    address, the name of the model, and the text of the question.

    Args:
        endpoint: The server with the model.
        repayment: The comment that admits the debt, and its function before and after the change.
    """
    content = [endpoint.url, endpoint.model, _question(repayment)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def ask(endpoint: ChatEndpoint, repayment: Repayment) -> str:
    """Ask a language model whether a change of code repays the technical debt that a deleted comment admits.

    Args:
        endpoint: The server with the model.
        repayment: The deleted comment, and its function before and after the change.

    Returns:
        The model's answer.

    Raises:
        InputError: The server gives no answer.
    """
    return endpoint.ask(_question(repayment))


def is_yes(answer: str) -> bool:
    """Return whether an answer begins with the word "yes", in upper or lower case.

    Marks before the word, such as `**`, are ignored.
    """
    return re.match(r"\W*yes\b", answer, re.IGNORECASE) is not None


def _question(repayment: Repayment) -> str:
    return _PROMPT.format(
        language=repayment.language,
        comment=repayment.comment,
        source=repayment.source,
        reference=repayment.reference,
    )
