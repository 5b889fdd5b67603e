"""`simllm mine satd`: find commits that resolve self-admitted technical debt, such as a TODO comment."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from simllm import optional_packages
from simllm.errors import InputError
from simllm.io import output_file, real_path
from simllm.io.output_file import locked
from simllm.io.output_folder import OutputFolder

if TYPE_CHECKING:
    from simllm.code.satd_mining.mine_repositories import Funnel

FORMATS: tuple[str, ...] = ()  # always JSON lines
MODEL = ("NAME", "with --judge: the name of the model; default: the server's choice")
WALKED = ("folders",)
HELP = "find commits that repay self-admitted technical debt, such as TODO comments"
EXAMPLES = """examples:
  simllm mine satd my/repositories -o items.jsonl
  simllm mine satd my/repositories -o items.jsonl --judge http://localhost:8000 --model NAME
A stopped run is continued by the same command. --judge sends code to the server at URL, with the API key in
the environment variable OPENAI_API_KEY, if it is set.
"""


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm mine satd` to its parser."""
    command.add_argument(
        "folders", nargs="+", type=Path, metavar="FOLDER", help="git repositories, or folders of them"
    )
    command.add_argument(
        "--judge", metavar="URL",
        help="keep only changes of which a model says that they repay the debt; URL is an OpenAI-compatible "
        "server such as http://localhost:8000",
    )  # fmt: skip


def run(options: argparse.Namespace) -> None:
    """Run `simllm mine satd` with the parsed options: find commits that resolve comments such as TODO.

    Such a commit deletes a comment, for example "TODO: handle errors", and changes the comment's function.
    Each line of the output file is a JSON object. It has the deleted comment, and the code of the function
    before and after the commit.
    """
    if options.output is None:
        raise InputError("expected -o FILE, to write the items to")
    if options.model and not options.judge:
        raise InputError("--model goes with --judge")
    output_file.check_output(options.output, [], overwrite=True)
    target = real_path.real(options.output)
    if target.exists() and not target.is_file():
        raise InputError(f"{options.output}: expected a file; the items cannot go to a pipe or a device")
    if not shutil.which("git"):
        raise InputError("git is not installed")
    with optional_packages.require_code_extra():
        from simllm.code.satd_mining.find_repositories import find_repositories
        from simllm.code.satd_mining.mine_repositories import SatdMining
        from simllm.code.satd_mining.satd_judge import ChatEndpoint

    key = os.environ.get("OPENAI_API_KEY", "").strip()
    endpoint = ChatEndpoint(options.judge, options.model, key) if options.judge else None
    repositories = find_repositories(options.folders)
    for each in repositories:
        OutputFolder(options.output).check_apart([each.paths.folder, each.paths.own, each.paths.common])
    output_file.check_output(options.output, [], options.overwrite)  # --overwrite never allows a file of git
    with locked(target):
        mining = SatdMining(target, repositories)
        is_silent = options.quiet or not sys.stderr.isatty()
        try:
            for _ in tqdm(mining.mine(), total=len(repositories), unit=" repositories", disable=is_silent):
                pass
            for _ in tqdm(mining.judge(endpoint) if endpoint else (), unit=" answers", disable=is_silent):
                pass
        except KeyboardInterrupt:
            raise KeyboardInterrupt("(the same command continues)") from None
        output_file.check_output(target, [], options.overwrite)  # another program may have just written it
        funnel = mining.write(endpoint)
    if not options.quiet:
        _print(funnel)


def _print(funnel: Funnel) -> None:
    """Print the counts of a mining run on standard error.

    A mining run finds deleted comments about technical debt, and filters them by rules. The counts are:

    - the repositories, and those that could not be read;
    - for each rule, the comments that fulfil this rule and all earlier rules;
    - for each split (training, validation and test data), the items that were written.
    """
    from simllm.code.satd_mining.repository_splits import SPLITS

    noun = "repository" if funnel.repositories == 1 else "repositories"
    unreadable = f", {funnel.unreadable:,} unreadable" if funnel.unreadable else ""
    print(f"simllm: {funnel.repositories:,} {noun}{unreadable}", file=sys.stderr)
    for rule, count in funnel.remaining.items():
        print(f"{count:10,}  {rule}", file=sys.stderr)
    sizes = ", ".join(f"{name} {funnel.splits[name]:,}" for name in SPLITS)
    print(f"simllm: {sizes}", file=sys.stderr)
