"""The jinja2 templates of the prompts for a language model; users can replace them by their own templates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import meta, nodes

from simllm.errors import InputError

_INCLUDED = Path(__file__).with_name("prompts")
_NAMES = {"cpp": "C++", "python": "Python", "java": "Java"}
# The variables of a template. None stands for a part that the item lacks or that the round does not add.
VARIABLES = ("item", "guidance", "solution", "failed", "compile_log", "verdict", "score", "bar")
# The errors that a wrong template can raise when it is rendered.
_RENDERING = (
    jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError
)  # fmt: skip


@dataclass(frozen=True)
class Prompts:
    """The templates of prompts for a language model, and the strategies that use them.

    A strategy is a list of requests to the model, each with the templates of its prompts.

    Attributes:
        texts: The content of each file, by its name: templates such as "request.j2", and "strategies.json".
    """

    texts: Mapping[str, str]

    @cached_property
    def _environment(self) -> jinja2.Environment:
        environment = jinja2.Environment(
            loader=jinja2.DictLoader(dict(self.texts)),
            undefined=jinja2.StrictUndefined,
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        environment.globals.update(names=_NAMES, fence_for=fence_for)
        return environment

    def check(self) -> None:
        """Check the syntax of all templates, and that they use only known variables.

        Raises:
            InputError: A template is wrong. The message names the template.
        """
        trees = {}
        for name, text in self.texts.items():
            if not name.endswith(".j2"):
                continue
            try:
                trees[name] = self._environment.parse(text, name)
                self._environment.get_template(name)
            except jinja2.TemplateSyntaxError as error:
                raise InputError(f"{name}, line {error.lineno}: {error.message}") from None
            except (RecursionError, SyntaxError, ValueError) as error:
                raise InputError(f"{name}: {_in_one_line(error)}") from None
        # A template that another one includes sees what the other one assigns.
        known = {
            *VARIABLES,
            *self._environment.globals,
            *(name for tree in trees.values() for name in _given(tree)),
        }
        for name, tree in trees.items():
            if unknown := sorted(meta.find_undeclared_variables(tree) - known):
                raise InputError(f"{name}: {unknown[0]!r} is undefined; known: {', '.join(VARIABLES)}")

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """Render a template: make a prompt from it.

        Args:
            name: The name of the template, such as "request.j2".
            values: The value of each variable that templates may use, such as "item" (the program to repair)
                or "guidance" (a tutor's hint). A variable without a value is None.

        Returns:
            The prompt, without empty lines at its beginning and end; it may be "".

        Raises:
            InputError: The template uses an undefined name, or cannot be rendered for another reason.
        """
        try:
            return self._environment.get_template(name).render(values).strip("\n")
        except _RENDERING as error:
            raise InputError(f"{name}: {_in_one_line(error)}") from None


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _given(tree: nodes.Template) -> set[str]:
    """Return the names that a template assigns (in loops, for example), or uses only if they are defined."""
    assigned = {node.name for node in tree.find_all(nodes.Name) if node.ctx != "load"}
    checks = tree.find_all((nodes.Filter, nodes.Test))
    checked = [node.node for node in checks if node.name in ("default", "d", "defined", "undefined")]
    return assigned | {node.name for node in checked if isinstance(node, nodes.Name)}


def load_prompts(folder: Path | None = None) -> Prompts:
    """Load the prompts that are included in simllm, and the user's own prompts.

    Args:
        folder: A folder with templates (`.j2`), or with a file `strategies.json`, or both. Each file in this
            folder replaces the included file of the same name. None loads only the included files.

    Raises:
        InputError: The folder has neither a template nor `strategies.json`. Or one of its files replaces no
            included file, and no other file uses it. Or a template is wrong, or a file cannot be read.
    """
    texts = included = _read(_INCLUDED)
    if folder is not None:
        own = _read(folder)
        if not own:
            raise InputError(f"{folder}: holds no template (.j2) and no strategies.json")
        texts = included | own
        for name in sorted(own.keys() - included.keys()):
            if not _is_used(name, texts):
                raise InputError(
                    f"{folder / name}: no other file uses it; to replace an included file, give yours its "
                    f"name: {', '.join(included)}"
                )
    prompts = Prompts(texts)
    try:
        prompts.check()
    except InputError as error:
        raise InputError(f"{folder or _INCLUDED}: {error}") from None
    return prompts


def _is_used(name: str, texts: Mapping[str, str]) -> bool:
    """Return whether a template is used by another template or by `strategies.json`.

    A file that uses the template contains its name in single or double quotes.

    Args:
        name: The file name of the template, such as "request.j2".
        texts: The content of each file (the templates and `strategies.json`), by file name.
    """
    quoted = re.compile(f"[\"']{re.escape(name)}[\"']")
    return any(quoted.search(text) for other, text in texts.items() if other != name)


def _read(folder: Path) -> dict[str, str]:
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix in (".j2", ".json"))
        return {path.name: path.read_text(encoding="utf-8") for path in paths}
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{folder}: a template is not UTF-8 ({error.reason})") from None


def fence_for(text: str) -> str:
    """Return a Markdown code fence for a text: three backticks, or more if the text has three in a row."""
    fence = "```"
    while fence in text:
        fence += "`"
    return fence
