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
    """Return items whose descriptions differ, so that their requests do."""
    return [ITEM | {"id": f"item {n}", "description": f"Print the next integer, {n}."} for n in range(count)]


def fenced(code):
    return f"So:\n```python\n{code}```\n"


def by_content(body):
    """Answer a request: right or wrong by its content, which makes a run repeatable."""
    text = "".join(message["content"] for message in body["messages"])
    return fenced(RIGHT if hashlib.sha256(text.encode()).digest()[0] % 3 == 0 else WRONG)
