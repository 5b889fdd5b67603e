"""`simllm mine satd`: find commits that resolve self-admitted technical debt, such as a TODO comment."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import shutil
import sys
import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from simllm.cli.shared_options import CommonOptions
from simllm.errors import InputError
from simllm.io import output_file, packages
from simllm.io.output_file import locked
from simllm.io.output_folder import OutputFolder
from simllm.llm.model import Model, read_model
from simllm.llm.records import ReplyRecord
from simllm.llm.session import Session

if TYPE_CHECKING:
    from simllm.code.satd_mining.mining import Funnel

FORMATS = ("text", "json")
MODEL = ("NAME", "with --judge: the name of the model; default: the server's choice")
WALKED = ("folders",)
EXAMPLES = """examples:
  simllm mine satd my/repositories -o items.jsonl
  simllm mine satd my/repositories -o items.jsonl --judge http://localhost:8000 --model NAME
A stopped run is continued by the same command. The counts go to standard error; -f json prints them on
standard output. --judge sends code to the server of the model, with the API key in the environment variable
OPENAI_API_KEY, if it is set. All answers are kept in FILE.answers.jsonl. The exit status is 1 if an item has
no usable answer.
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm mine satd`."""

    folders: list[Path]
    timeout: float = 3600.0
    allow_shallow: bool = False
    judge: str | None = None
    parallel: int | None = None
    retries: int | None = None
    retry_failed: bool = False
    model: str | None = None


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm mine satd` to its parser."""
    command.add_argument(
        "folders", nargs="+", type=Path, metavar="FOLDER", help="git repositories, or folders of them"
    )
    command.add_argument(
        "--timeout", type=float, metavar="SECONDS",
        help="leave out a repository that takes longer; default: 3600",
    )  # fmt: skip
    command.add_argument(
        "--allow-shallow", action="store_true", help="mine shallow clones, too, whose history is cut off"
    )
    command.add_argument(
        "--judge", metavar="MODEL",
        help="keep only changes of which a model says that they repay the debt; MODEL is a file (FILE.toml), "
        "or the address of an OpenAI-compatible server such as http://localhost:8000",
    )  # fmt: skip
    command.add_argument("--parallel", type=int, metavar="N", help="questions at the same time; default: 8")
    command.add_argument("--retries", type=int, metavar="N", help="of a failed request; default: 5")
    command.add_argument(
        "--retry-failed", action="store_true", help="ask again where there was no usable answer"
    )


def run(options: Options) -> int:
    """Run `simllm mine satd`: write commits that delete a comment such as "TODO: …" and change its function.

    The exit status is 1 if the judge gave no usable answer about an item, else 0.
    """
    if options.output is None:
        raise InputError("expected -o FILE, to write the items to")
    for name in ("model", "parallel", "retries", "retry_failed"):
        if getattr(options, name) not in (None, False) and not options.judge:
            raise InputError(f"--{name.replace('_', '-')} goes with --judge")
    if not (options.timeout > 0 and math.isfinite(options.timeout)):
        raise InputError(f"--timeout {options.timeout:g}: expected a positive number of seconds")
    # An existing file may be the unfinished run; whether it may be replaced is checked below.
    output_file.check_output(options.output, overwrite=True)
    target = output_file.real(options.output)
    if target.exists() and not target.is_file():
        raise InputError(f"{options.output}: expected a file; the items cannot go to a pipe or a device")
    # Before the long imports and the first repository.
    if not shutil.which("git"):
        raise InputError("git is not installed")
    with packages.require_code_extra():
        from simllm.code.satd_mining.mining import SatdMining, find_repositories
        from simllm.llm.endpoint import LostReplyError

    # Before the mining, so that a wrong judge is an error now, not after hours.
    judge = _judge(options)
    if judge:
        Session(judge, ReplyRecord()).stop()
    repositories = find_repositories(options.folders)
    for each in repositories:
        OutputFolder(options.output).check_apart([each.paths.folder, each.paths.own, each.paths.common])
    output_file.check_output(options.output, options.overwrite)  # --overwrite never allows a file of git
    with contextlib.ExitStack() as held:
        held.enter_context(locked(target))
        mining = SatdMining(target, repositories, options.timeout, options.allow_shallow)
        session = _session(judge, target, options, held) if judge else None
        try:
            for _ in tqdm(
                mining.mine(), total=len(repositories), unit=" repositories", disable=not options.has_bar
            ):
                pass
            answers = mining.judge(session) if session else ()
            for _ in tqdm(answers, unit=" answers", disable=not options.has_bar):
                pass
        except KeyboardInterrupt:
            raise KeyboardInterrupt("(the same command continues)") from None
        # Not an `InputError`: nothing is wrong with the options, and the run can be continued.
        except LostReplyError as error:
            print(f"simllm: error: {error}; the same command continues", file=sys.stderr)
            return 1
        if session and session.lost:
            count = f"{len(session.lost):,} answer{'s are' if len(session.lost) > 1 else ' is'} missing"
            print(f"simllm: error: {count} ({session.lost[0]}); the same command continues", file=sys.stderr)
            return 1
        output_file.check_output(target, options.overwrite)  # another program may have just written it
        funnel = mining.write(session)
    if not options.quiet:
        _print(funnel)
    if options.format == "json":
        print(json.dumps(asdict(funnel), indent=1))
    if funnel.failures:
        count = f"{len(funnel.failures):,} item{'s have' if len(funnel.failures) > 1 else ' has'}"
        warnings.warn(f"{count} no usable answer of the judge ({funnel.failures[0]})", stacklevel=2)
    return 1 if funnel.failures else 0


def _judge(options: Options) -> Model | None:
    """Return the model that judges, from the file or the address of `--judge`."""
    if not options.judge:
        return None
    limits = (("model", options.model), ("parallel", options.parallel), ("retries", options.retries))
    given: dict[str, Any] = {name: value for name, value in limits if value is not None}
    model: Model
    if options.judge.endswith(".toml"):
        model = replace(read_model(Path(options.judge)), **given)
    else:
        model = Model(base_url=options.judge, **given)
    # By default, answers differ as little as possible between runs.
    return model if model.temperature is not None else replace(model, temperature=0.0)


def _session(judge: Model, target: Path, options: Options, held: contextlib.ExitStack) -> Session:
    """Open the record of answers beside the output, and a session with the judge."""
    record = ReplyRecord(target.with_name(f"{target.name}.answers.jsonl"))
    held.enter_context(contextlib.closing(record))
    return held.enter_context(Session(judge, record, retries_failed=options.retry_failed))


def _print(funnel: Funnel) -> None:
    """Print the counts of a mining run; a rule's count are the comments that fulfil this rule and all earlier
    ones.
    """
    noun = "repository" if funnel.repositories == 1 else "repositories"
    skipped = f", {len(funnel.skipped):,} left out" if funnel.skipped else ""
    print(f"simllm: {funnel.repositories:,} {noun}{skipped}", file=sys.stderr)
    for rule, count in funnel.remaining.items():
        print(f"{count:10,}  {rule}", file=sys.stderr)
    for title, counts in (("judge: ", funnel.verdicts), ("", funnel.splits)):
        if counts is not None:
            print(f"simllm: {title}{', '.join(f'{k} {v:,}' for k, v in counts.items())}", file=sys.stderr)
