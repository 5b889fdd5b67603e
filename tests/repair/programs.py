"""Small items for tests of repair."""

import hashlib

RIGHT, WRONG = "print(int(input()) + 1)\n", "print(input())\n"
ITEM = {
    "id": "next",
    "language": "python",
    "description": "Print the next integer.",
    "code": WRONG,
    "fix": RIGHT,
    "guidance": "What is next to 1?",
    "solution": "Add one.",
    "tests": [{"input": "1\n", "output": "2\n"}, {"input": "-1\n", "output": "0\n"}],
}


def items(count):
    """Return items with different descriptions, so that no two items lead to the same request."""
    return [ITEM | {"id": f"item {n}", "description": f"Print the next integer, {n}."} for n in range(count)]


def fenced(code):
    return f"So:\n```python\n{code}```\n"


def by_content(body):
    """Answer a request with a correct or an incorrect program.

    The choice depends only on the content of the request, so that a run can be repeated.
    """
    text = "".join(message["content"] for message in body["messages"])
    return fenced(RIGHT if hashlib.sha256(text.encode()).digest()[0] % 3 == 0 else WRONG)
