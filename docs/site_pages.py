"""Hook of MkDocs: pages made from other files, and the model of the playground, when the site is built."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the command-line reference, the card of the included model, the changelog and the citation."""
    pages = {
        "reference/commands.md": commands_page(),
        "model-card.md": _read("checkpoints/default/README.md").partition("\n---\n")[2],
        "changelog.md": _read("CHANGELOG.md"),
        "citation.md": citation_page(),
    }
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Write the included model and the runtime into the folder `playground` of the site."""
    from simllm.analysis.playground import write_model
    from simllm.metric import SimLLM

    write_model(SimLLM(long="whole"), Path(config.site_dir) / "playground")


def _read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def commands_page() -> str:
    """Write what `--help` prints of `simllm` and of each of its commands, as a page."""
    from simllm.cli.parser import COMMANDS

    parts = ["# Commands", "What `--help` prints."]
    for command in ["", *COMMANDS]:
        parts += [f"## simllm {command}".rstrip(), f"```\n{_help_of(command)}```"]
    return "\n\n".join(parts) + "\n"


def _help_of(command: str) -> str:
    from simllm.cli.parser import parse

    printed, width = io.StringIO(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100"  # argparse asks for the terminal's width
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            parse([*command.split(), "--help"])
    finally:
        os.environ.pop("COLUMNS")
        if width is not None:
            os.environ["COLUMNS"] = width
    return printed.getvalue()


def citation_page() -> str:
    """Write how to cite simllm: the README's section, without its links into the repository."""
    section = _read("README.md").partition("\n## Citation and licence\n")[2]
    return "# Citation and licence\n" + re.sub(r"\[([^]]+)\]\((?!https?:)[^)]*\)", r"\1", section)
