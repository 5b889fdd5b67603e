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

from simllm.cli import shared_options
from simllm.cli.shared_options import CommonOptions
from simllm.errors import InputError
from simllm.io import output_file, packages, tables
from simllm.io.output_file import locked
from simllm.io.output_folder import OutputFolder
from simllm.llm.model import read_model
from simllm.llm.records import ReplyRecord
from simllm.llm.session import Session

if TYPE_CHECKING:
    from simllm.code.satd_mining.judge import Judge, Prompts
    from simllm.code.satd_mining.mining import ExistingItems, SatdMining
    from simllm.code.satd_mining.selection import Funnel

FORMATS = ("text", "json")
MODEL = ("NAME", "with --judge: the name of the model; default: the server's choice")
WALKED = ("folders",)
EXAMPLES = """examples:
  simllm mine satd my/repositories -o items.jsonl
  simllm mine satd my/repositories -o items.jsonl --language java,python --words todo,fixme,workaround
  simllm mine satd my/repositories -o items.jsonl --judge http://localhost:8000 --model NAME
  simllm mine satd --items others.jsonl -o kept.jsonl --judge judge.toml --labelled labels.jsonl
A stopped run is continued by the same command. The counts go to standard error; -f json prints them on
standard output. --judge sends code to the server of the model, with the API key in the environment variable
OPENAI_API_KEY, if it is set. All answers are kept in FILE.answers.jsonl. The exit status is 1 if an item has
no usable answer.
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm mine satd`."""

    folders: list[Path]
    items: Path | None = None
    words: str | None = None
    language: str | None = None
    timeout: float = 3600.0
    allow_shallow: bool = False
    judge: str | None = None
    template: str | None = None
    labelled: Path | None = None
    parallel: int | None = None
    retries: int | None = None
    retry_failed: bool = False
    model: str | None = None


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm mine satd` to its parser."""
    command.add_argument(
        "folders", nargs="*", type=Path, metavar="FOLDER", help="git repositories, or folders of them"
    )
    command.add_argument(
        "--items", type=Path, metavar="FILE",
        help="check the items in FILE instead: JSON lines with source, reference, language, perhaps comment",
    )  # fmt: skip
    command.add_argument(
        "--words", metavar="A,B,…", help="words that admit debt; default: todo,fixme,hack,xxx"
    )
    command.add_argument("--language", metavar="A,B,…", help="only these languages; default: all")
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
    command.add_argument(
        "--template", metavar="NAME",
        help="the question to the judge: satd-judge (default), satd-judge-cot, or a file",
    )  # fmt: skip
    command.add_argument(
        "--labelled", type=Path, metavar="FILE",
        help="precision, recall, F1 of the judge: JSON lines with the id and label (yes, no) of items",
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
    target = _check(options)
    with packages.require_code_extra():
        from simllm.code.satd_mining.mining import SatdMining
        from simllm.code.satd_mining.selection import ask_judge, write_items
    # Before the mining, so that a wrong judge is an error now, not after hours.
    judge, prompts = _judge(options)
    labels = _labels(options)
    if judge:
        Session(judge, ReplyRecord()).stop()
    with contextlib.ExitStack() as held:
        source = _source(options, target, held)
        session = _session(judge, target, options, held) if judge else None
        with shared_options.resumable():
            if isinstance(source, SatdMining):
                for _ in tqdm(
                    source.mine(), total=len(source), unit=" repositories", disable=not options.has_bar
                ):
                    pass
            answers = ask_judge(source, session, prompts) if session and prompts else ()
            for _ in tqdm(answers, unit=" answers", disable=not options.has_bar):
                pass
        if session:
            session.check_complete()
        output_file.check_output(target, options.overwrite)  # another program may have just written it
        funnel = write_items(target, source, session, prompts, labels)
        if isinstance(source, SatdMining):
            source.remove()
    if not options.quiet:
        _print(funnel)
    if options.format == "json":
        print(json.dumps(asdict(funnel), indent=1))
    if funnel.failures:
        count = f"{len(funnel.failures):,} item{'s have' if len(funnel.failures) > 1 else ' has'}"
        warnings.warn(f"{count} no usable answer of the judge ({funnel.failures[0]})", stacklevel=2)
    return 1 if funnel.failures else 0


def _check(options: Options) -> Path:
    """Check how options go together, and return the real path of the output."""
    if options.output is None:
        raise InputError("expected -o FILE, to write the items to")
    if not options.judge:
        names = ("model", "parallel", "retries", "retry_failed", "template", "labelled")
        shared_options.refuse(options, names, "goes with --judge")
    if bool(options.folders) == (options.items is not None):
        raise InputError("expected folders of git repositories, or else --items FILE")
    if options.items is not None:
        shared_options.refuse(options, ("timeout", "allow_shallow"), "goes with repositories")
    if not (options.timeout > 0 and math.isfinite(options.timeout)):
        raise InputError(f"--timeout {options.timeout:g}: expected a positive number of seconds")
    # An existing file may be the unfinished run; whether it may be replaced is checked later.
    output_file.check_output(options.output, overwrite=True)
    target = output_file.real(options.output)
    if target.exists() and not target.is_file():
        raise InputError(f"{options.output}: expected a file; the items cannot go to a pipe or a device")
    # Before the long imports and the first repository.
    if options.folders and not shutil.which("git"):
        raise InputError("git is not installed")
    return target


def _source(options: Options, target: Path, held: contextlib.ExitStack) -> SatdMining | ExistingItems:
    """Open what the items come from, and lock the output."""
    from simllm.code.languages.language import find_language
    from simllm.code.satd_mining.comments import WORDS, DebtWords
    from simllm.code.satd_mining.mining import ExistingItems, SatdMining, SearchOptions, find_repositories

    words = DebtWords(_list(options.words) or WORDS)
    languages = _list(options.language)
    for language in languages:
        find_language(language)
    assert options.output
    repositories = find_repositories(options.folders)
    for each in repositories:
        OutputFolder(options.output).check_apart([each.paths.folder, each.paths.own, each.paths.common])
    output_file.check_output(options.output, options.overwrite)  # --overwrite never allows a file of git
    if options.items is not None:
        items = ExistingItems(options.items, words, languages)
        held.enter_context(locked(target))
        return items
    held.enter_context(locked(target))
    search = SearchOptions(words.words, languages, options.timeout, options.allow_shallow)
    return SatdMining(target, repositories, search)


def _list(value: str | None) -> tuple[str, ...]:
    return () if value is None else tuple(dict.fromkeys(name.strip() for name in value.split(",")))


def _judge(options: Options) -> tuple[Judge | None, Prompts | None]:
    """Return the model that judges, from the file or the address of `--judge`, and its questions."""
    if not options.judge:
        return None, None
    from simllm.code.satd_mining.judge import Judge, Prompts

    names = ("model", "parallel", "retries", "template")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    folder = Path()
    judge: Judge
    if options.judge.endswith(".toml"):
        judge = replace(read_model(Path(options.judge), Judge), **given)
        # A template that the file names lies beside the file.
        folder = folder if options.template else Path(options.judge).parent
    else:
        judge = Judge(base_url=options.judge, **given)
    # By default, answers differ as little as possible between runs.
    judge = judge if judge.temperature is not None else replace(judge, temperature=0.0)
    return judge, Prompts(judge, folder)


def _labels(options: Options) -> dict[str, bool] | None:
    if options.labelled is None:
        return None
    from simllm.code.satd_mining.judge import read_labels

    return read_labels(options.labelled)


def _session(judge: Judge, target: Path, options: Options, held: contextlib.ExitStack) -> Session:
    """Open the record of answers beside the output, and a session with the judge."""
    record = ReplyRecord(target.with_name(f"{target.name}.answers.jsonl"))
    held.enter_context(contextlib.closing(record))
    return held.enter_context(Session(judge, record, retries_failed=options.retry_failed))


def _print(funnel: Funnel) -> None:
    """Print the counts of a mining run; a rule's count are the comments that fulfil this rule and all earlier
    ones.
    """
    if funnel.items is None:
        noun = "repository" if funnel.repositories == 1 else "repositories"
        skipped = f", {len(funnel.skipped):,} left out" if funnel.skipped else ""
        print(f"simllm: {funnel.repositories:,} {noun}{skipped}", file=sys.stderr)
    else:
        print(f"simllm: {tables.format_count(funnel.items, 'item')}", file=sys.stderr)
    for rule, count in funnel.remaining.items():
        print(f"{count:10,}  {rule}", file=sys.stderr)
    for title, counts in (("judge: ", funnel.verdicts), ("", funnel.splits)):
        if counts:
            print(f"simllm: {title}{', '.join(f'{k} {v:,}' for k, v in counts.items())}", file=sys.stderr)
    if funnel.agreement:
        from simllm.code.satd_mining.judge import INTERVAL

        print(f"simllm: agreement with {funnel.agreement['labelled']:,} labels:", file=sys.stderr)
        for name, value in funnel.agreement.items():
            if name != "labelled" and not name.endswith(INTERVAL):
                ends = funnel.agreement.get(f"{name}{INTERVAL}")
                more = f" ({ends[0]:.2f} to {ends[1]:.2f})" if ends else ""
                print(f"{_cell(value):>10}  {name}{more}", file=sys.stderr)


def _cell(value: Any) -> str:
    """Format a count or a share; a value that is not defined is "n/a"."""
    if value is None:
        return "n/a"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
