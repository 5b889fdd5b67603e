"""A process of its own that checks and renders the jinja2 templates of prompts.

Templates may come from elsewhere, as in the run folder of somebody else. They see only what they are given
(jinja2's sandbox), and a template without an end, or of endless size, ends this process alone. The process
reads requests as JSON lines and answers each with a JSON line: a result, or an error of one line.

The file is run by its path, with no other module of simllm, so that it starts fast.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

MOST_SECONDS = 10.0  # to check all templates, or to render one
_MOST_MEMORY = 1 << 30  # bytes of address space
_MOST_TEXT = 8_000_000  # characters of a prompt
_NAMES = {"cpp": "C++", "python": "Python", "java": "Java"}
# The errors that a wrong template can raise when it is rendered.
_RENDERING = (
    jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError,
    MemoryError,
)  # fmt: skip


class _Environment(ImmutableSandboxedEnvironment):
    # Without operators that multiply, jinja2 would compute constants such as "x" * 10**10 when it compiles.
    intercepted_binops = frozenset({"*", "**", "%", "+"})


def make_environment(texts: Mapping[str, str]) -> jinja2.Environment:
    """Make the environment in which templates are checked and rendered."""
    environment = _Environment(
        loader=jinja2.DictLoader(dict(texts)),
        # A misspelt variable must be an error, not an empty text in every prompt. Prompts are not HTML, so
        # that nothing is escaped.
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_printable,
    )
    # Random text: the same item would not give the same request.
    del environment.globals["lipsum"], environment.filters["random"]
    environment.globals.update(names=_NAMES, fence_for=fence_for)
    return environment


def _printable(value: Any) -> Any:
    """Return a value that a template prints; refuse functions and generators, whose text is an address."""
    # `item.items` is a function of Python, although the item may have a field of this name.
    if callable(value) and not isinstance(value, jinja2.Undefined):
        raise TypeError('a function is printed; a field of its name is item["name"]')
    if isinstance(value, Iterator):
        raise TypeError("a filter's values are printed, without |list or |join")
    return value


def fence_for(text: str) -> str:
    """Return a Markdown code fence for a text: three backticks, or more if the text has three in a row."""
    fence = "```"
    while fence in text:
        fence += "`"
    return fence


def check(environment: jinja2.Environment, texts: Mapping[str, str], variables: list[str]) -> None:
    """Check the syntax of all templates, and that they use only known variables and public attributes.

    A wrong template raises a `ValueError` that names the template.
    """
    trees = {}
    for name, text in texts.items():
        try:
            trees[name] = environment.parse(text, name)
            environment.get_template(name)
        except jinja2.TemplateSyntaxError as error:
            raise ValueError(f"{name}, line {error.lineno}: {error.message}") from None
        except (RecursionError, SyntaxError, ValueError, MemoryError) as error:
            raise ValueError(f"{name}: {_in_one_line(error)}") from None
        _check_attributes(name, trees[name])
    # A template that another one includes sees what the other one assigns.
    known = {*variables, *environment.globals, *(one for tree in trees.values() for one in _given(tree))}
    for name, tree in trees.items():
        if unknown := sorted(meta.find_undeclared_variables(tree) - known):
            raise ValueError(f"{name}: {unknown[0]!r} is undefined; known: {', '.join(variables)}")


def _check_attributes(name: str, tree: nodes.Template) -> None:
    """Refuse attributes that begin with an underscore."""
    reached = [(node.attr, node.lineno) for node in tree.find_all(nodes.Getattr)]
    reached += [
        (node.arg.value, node.lineno)
        for node in tree.find_all(nodes.Getitem)
        if isinstance(node.arg, nodes.Const)
    ]
    reached += [
        (argument.value, node.lineno)
        for node in tree.find_all(nodes.Filter)
        if node.name == "attr"
        for argument in node.args
        if isinstance(argument, nodes.Const)
    ]
    for attribute, line in reached:
        if isinstance(attribute, str) and attribute.startswith("_"):
            raise ValueError(f"{name}, line {line}: templates cannot use {attribute[:40]!r}")


def _given(tree: nodes.Template) -> set[str]:
    """Return the names that a template assigns, in loops for example, or uses only if they are defined."""
    assigned = {node.name for node in tree.find_all(nodes.Name) if node.ctx != "load"}
    checks = tree.find_all((nodes.Filter, nodes.Test))
    checked = [node.node for node in checks if node.name in ("default", "d", "defined", "undefined")]
    return assigned | {node.name for node in checked if isinstance(node, nodes.Name)}


def render(environment: jinja2.Environment, name: str, values: Mapping[str, Any]) -> str:
    """Render a template, without empty lines at the beginning and end; raise `ValueError` if it is wrong."""
    try:
        text = environment.get_template(name).render(values).strip("\n")
    except jinja2.TemplateNotFound as error:
        raise ValueError(f"{name}: cannot include {_in_one_line(error)}, which is no template") from None
    except SecurityError as error:
        raise ValueError(f"{name}: templates cannot do this: {_in_one_line(error)}") from None
    except _RENDERING as error:
        raise ValueError(f"{name}: {_in_one_line(error)}") from None
    if len(text) > _MOST_TEXT:
        raise ValueError(f"{name}: the message has more than {_MOST_TEXT:,} characters")
    return text


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:500] or type(error).__name__


def _limit_memory() -> None:
    """Limit the memory of this process, where the system can: Linux can."""
    with contextlib.suppress(ModuleNotFoundError, ValueError, OSError):
        import resource

        # A template that ends the process must not leave an image of the memory on the disk.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))


def main() -> None:
    """Answer requests until the standard input ends: first the texts and variables, then what to render."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the parent, which closes the input
    _limit_memory()
    environment: jinja2.Environment | None = None
    for line in sys.stdin.buffer:
        # It ends the process, also inside of C code, and on every system.
        faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
        request = json.loads(line)
        try:
            if environment is None:
                environment = make_environment(request["texts"])
                check(environment, request["texts"], request["variables"])
                answer = {"result": ""}
            else:
                answer = {"result": render(environment, request["name"], request["values"])}
        except ValueError as error:
            answer = {"error": str(error)}
        faulthandler.cancel_dump_traceback_later()
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
