"""`simllm perturb code`: rewrite Java and Python code without changing its behaviour."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from simllm.cli.shared_options import CommonOptions, split_names
from simllm.errors import InputError
from simllm.io import output_file, packages, tables
from simllm.io.output_folder import OutputFolder
from simllm.io.tables import format_count

if TYPE_CHECKING:
    from simllm.perturb.code.names import Namer
    from simllm.perturb.code.variants import VariantCounts

FORMATS: tuple[str, ...] = ()  # JSON lines, or a folder
MODEL = ("FOLDER", "with --names nearest: the model that knows the words; default: the included one")
_NAMERS = ("lexicon", "nearest", "plain")
_LLM = "llm="  # begins a value of --names
_RECORD = ".names.jsonl"  # ends the name of the file with the model's replies
_SHOWN = 3  # names that a warning tells
_CONTENT = "variants of code"  # of the output folder, for its marker
EXAMPLES = """examples:
  simllm perturb code src/ --rules for-to-while,reverse-if -o out/
  simllm perturb code --jsonl functions.jsonl --names plain --prove inputs -o variants.jsonl
  simllm perturb code src/ --prove 'python -m pytest {dir}' -o out/

rules that run by default, in this order:
  rename-function, rename-parameter, rename-variable
  for-to-while    a for loop becomes a while loop
  nest-else-if    else if becomes else { if }
  reverse-if      the condition is negated, the branches are exchanged
  swap-relation   a < b becomes b > a
  swap-equals     a == b becomes b == a
  expand-increment  i++ becomes i += 1
rules that run only when named: remove-comments, expand-compound, add-braces, dead-code

A rule rewrites every place where the language guarantees that nothing changes. The other places stay; the
reasons are in the output under `skipped`.

A folder keeps its other files: they are copied unchanged. So are files that cannot be parsed, with a warning.
Not copied are .git, the markers .simllm, empty folders, pipes, sockets, devices, and links that are absolute
or lead to nothing that is copied. Copies keep permissions, but no setuid, setgid and sticky bits, owners,
ACLs or extended attributes; hard links become separate files.

A line of JSON lines has id, language (java or python), source (a file or a function), and possibly reference,
label, nll, group, names (an object of new names by old names, which come before those of --names) and around
(code that the source needs: members of its class in Java, the text before it in Python). A file whose name
ends in .json is an object of sources by their ids.

llm=FILE.toml has the keys of a model (base_url, model, temperature, …) and may name a template. The model is
asked once for each item; its replies are in the file of -o with .names.jsonl after its name.
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm perturb code`."""

    paths: list[Path]
    jsonl: Path | None = None
    language: str | None = None
    rules: str | None = None
    names: str = "lexicon"
    share: float = 1.0
    seed: int = 0
    each_rule: bool = False
    variants: int = 1
    prove: str | None = None
    parallel: int = 1
    unsafe: bool = False
    model: str | None = None


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm perturb code` to its parser."""
    command.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files, folders; -o is a folder")
    command.add_argument("--jsonl", type=Path, metavar="FILE", help="items with code; -o is a file")
    command.add_argument("--language", choices=("java", "python"), help="of items that name no language")
    command.add_argument("--rules", metavar="A,B,…", help="the rules, in the order in which they run")
    command.add_argument(
        "--names", metavar="WHERE",
        help="where new names come from: lexicon (synonyms), nearest (nearest words of the metric), plain "
        "(v0, v1, …), llm=FILE.toml (a language model, with --jsonl), or a file with lines OLD<tab>NEW; "
        "default: %(default)s",
    )  # fmt: skip
    command.add_argument("--share", type=float, metavar="X", help="share of places to rewrite; default: all")
    command.add_argument("--seed", type=int, metavar="N", help="chooses these places; default: 0")
    command.add_argument(
        "--each-rule", action="store_true", help="with --jsonl: write a further variant for each rule alone"
    )
    command.add_argument(
        "--variants", type=int, metavar="N",
        help="with --jsonl: variants of an item; all but the first draw other names, and half of the "
        "places (or --share); default: %(default)s",
    )  # fmt: skip
    command.add_argument(
        "--prove", metavar="HOW",
        help="inputs: run original and variant of functions on the same inputs in a sandbox (with --jsonl); "
        "or a command in which {dir} stands for the folder, such as 'pytest {dir}'",
    )  # fmt: skip
    command.add_argument(
        "--parallel", type=int, metavar="N", help="batches of proofs at once; default: %(default)s"
    )
    command.add_argument(
        "--unsafe", action="store_true", help="with --prove inputs: run functions without a sandbox"
    )


def run(options: Options) -> None:
    """Run `simllm perturb code`: rewrite code, and write the rewritten variants."""
    if bool(options.paths) == bool(options.jsonl):
        raise InputError("expected files or folders, or --jsonl FILE")
    with packages.require_code_extra():
        from simllm.perturb.code.folders import find_files, vary_files
        from simllm.perturb.code.names import read_names
        from simllm.perturb.code.rules import DEFAULT_RULES
        from simllm.perturb.code.variants import RewritePlan, VariantCounts, read_items, vary_items
    _check_proof(options)
    rules = DEFAULT_RULES
    if options.rules is not None:
        rules = tuple(split_names(options.rules))
    is_model = options.names.startswith(_LLM)
    if is_model and not options.jsonl:
        raise InputError("--names llm=FILE.toml goes with --jsonl: a model proposes names for items")
    given = {} if options.names in _NAMERS or is_model else read_names(Path(options.names))
    if options.variants != 1 and (options.each_rule or not options.jsonl):
        raise InputError("--variants goes with --jsonl, and without --each-rule")
    plan = RewritePlan(rules, _namer(options, given), options.share, options.seed, variants=options.variants)
    counts = VariantCounts()
    if options.jsonl:
        output_file.check_output(options.output, options.overwrite)
        items = read_items(options.jsonl, options.language)
        asked = _proposed(items, rules, options) if is_model else contextlib.nullcontext(items)
        with asked as known:
            pairs = ((item, row) for item in known for row in vary_items([item], plan, options.each_rule))
            lines = _lines(_counted(_proven(pairs, options), counts, options))
            # Lines appear on standard output as they are made; a file is replaced when it is whole.
            if options.output is None:
                tables.show(lines, None)
            else:
                output_file.write(options.output, lines)
    else:
        if options.output is None:
            raise InputError("expected -o FOLDER, to write the variants to")
        if options.each_rule or options.language:
            raise InputError("--each-rule and --language go with --jsonl")
        # Only for its checks, before the folder is made.
        find_files(options.paths)
        OutputFolder(options.output, _CONTENT).check_replaceable()
        OutputFolder(options.output).check_apart(options.paths)
        with OutputFolder(options.output, _CONTENT).replacing() as partial:
            for _ in _counted(vary_files(options.paths, plan, partial), counts, options):
                pass
            # Before the folder gets its name: after a refutation nothing is left.
            if options.prove:
                _prove_folder(options, options.prove, partial)
    if not options.quiet:
        _print(counts, rules)
    _warn(counts, given, options)


def _warn(counts: VariantCounts, given: dict[str, str], options: Options) -> None:
    """Warn if nothing was rewritten, or if names of the file of `--names` were not used."""
    total = sum(counts.status.values())
    if total and not counts.status["rewritten"]:
        warnings.warn(f"no code differs from its original: 0 of {total:,} rewritten", stacklevel=2)
    if lacking := counts.numbers[0] - counts.numbers[options.variants - 1]:
        warnings.warn(
            f"{lacking:,} of {counts.numbers[0]:,} rewritten sources have fewer than {options.variants:,} "
            "different variants",
            stacklevel=2,
        )
    if unused := [name for name in given if name not in counts.renamed]:
        more = ", …" if len(unused) > _SHOWN else ""
        warnings.warn(
            f"{options.names}: {len(unused):,} of {len(given):,} old names are renamed nowhere "
            f"({', '.join(unused[:_SHOWN])}{more}); `skipped` in the output has reasons",
            stacklevel=2,
        )


def _check_proof(options: Options) -> None:
    """Check the options `--prove`, `--unsafe` and `--parallel`, which control tests of the rewritten code."""
    if options.unsafe and options.prove != "inputs":
        raise InputError("--unsafe goes with --prove inputs")
    if options.prove is not None:
        # Inputs can be invented for a function, and a command such as pytest runs in a folder.
        if (options.prove == "inputs") != bool(options.jsonl):
            raise InputError("--prove inputs goes with --jsonl, and --prove COMMAND with a folder")
        if not options.jsonl and (len(options.paths) > 1 or not options.paths[0].is_dir()):
            raise InputError("--prove COMMAND needs a single folder, with all that the command needs")
    if options.parallel < 1:
        raise InputError(f"--parallel {options.parallel}: expected 1 or more")


def _proven(
    pairs: Iterable[tuple[dict[str, Any], dict[str, Any]]], options: Options
) -> Iterator[dict[str, Any]]:
    """Yield the variants of pairs (original, variant); `--prove inputs` adds the result of its test under
    `proof`.

    A variant that behaves differently loses its code.
    """
    if options.prove is None:
        yield from (row for _, row in pairs)
        return
    from simllm.execution import Sandbox
    from simllm.perturb.code.proof.testing import prove_variants

    with Sandbox(unsafe=options.unsafe) as sandbox:
        yield from prove_variants(pairs, sandbox, seed=options.seed, parallel=options.parallel)


def _prove_folder(options: Options, command: str, variant: Path) -> None:
    """Run the command of `--prove`, such as a test suite, on the original and on the rewritten folder."""
    from simllm.perturb.code.proof import prove_by_command

    proof = prove_by_command(command, options.paths[0], variant)
    if proof.verdict == "refuted":
        raise InputError(f"refuted, nothing is written: the command fails on the variants ({proof.reason})")
    if not options.quiet:
        print(f"simllm: {proof.verdict}", file=sys.stderr)


def _namer(options: Options, given: dict[str, str]) -> Namer:
    """Return the function that proposes new names, as `--names` selects it."""
    from simllm.perturb.code.names import namer_of

    if options.names == "nearest":
        from simllm.metric import SimLLM
        from simllm.perturb.code.names import nearest_names

        return nearest_names(SimLLM(options.model).embed)
    if options.model:
        # Other names come without a model, so that the option would have no effect.
        raise InputError("--model goes with --names nearest")
    if options.names.startswith(_LLM):
        # For names without a usable proposal.
        return namer_of("lexicon")
    return namer_of(options.names if options.names in _NAMERS else given)


@contextlib.contextmanager
def _proposed(
    items: Iterable[dict[str, Any]], rules: Sequence[str], options: Options
) -> Iterator[Iterator[dict[str, Any]]]:
    """Yield the items with names that the model of `--names llm=FILE` proposes.

    Replies are recorded beside the output, and a reply on record is never asked for again.
    """
    with packages.require_llm_extra():
        from simllm.llm.model import read_model
        from simllm.llm.records import ReplyRecord
        from simllm.llm.session import Session
        from simllm.perturb.code.model_names import TEMPLATE, NamesModel, ProposalCounts, propose_names
    file = Path(options.names.removeprefix(_LLM))
    model = read_model(file, NamesModel)
    template = TEMPLATE if model.template is None else file.parent / model.template
    total = ProposalCounts()

    def counted(session: Session) -> Iterator[dict[str, Any]]:
        for item, counts in propose_names(items, rules, session, template):
            total.add(counts)
            yield item

    place = None if options.output is None else options.output.with_name(options.output.name + _RECORD)
    with contextlib.ExitStack() as held:
        if place is not None:
            held.enter_context(output_file.locked(place))
        record = held.enter_context(contextlib.closing(ReplyRecord(place)))
        session = held.enter_context(Session(model, record))
        yield counted(session)
    if not options.quiet:
        print(f"simllm: {total}", file=sys.stderr)


def _counted(
    rows: Iterable[dict[str, Any]], counts: VariantCounts, options: Options
) -> Iterator[dict[str, Any]]:
    """Yield rows unchanged; count them, and show a progress bar."""
    for row in tqdm(rows, unit=" sources", disable=not options.has_bar):
        counts.add(row)
        yield row


def _lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row, ensure_ascii=False) + "\n"


def _print(counts: VariantCounts, rules: Iterable[str]) -> None:
    """Print on standard error how much code was rewritten, and the results of `--prove`."""
    print(f"{'rule':<18}{'rewritten':>11}{'skipped':>9}", file=sys.stderr)
    for rule in rules:
        print(f"{rule:<18}{counts.rewritten[rule]:>11,}{counts.skipped[rule]:>9,}", file=sys.stderr)
    states = ["rewritten", "unchanged", "unparsed", *(["refuted"] if counts.status["refuted"] else [])]
    done = ", ".join(f"{counts.status[name]:,} {name}" for name in states)
    print(f"simllm: {format_count(sum(counts.status.values()), 'variant')}: {done}", file=sys.stderr)
    run, killed = counts.mutants
    # Every variant is parsed again, which is not worth a line.
    if set(counts.verdicts) - {"parsed"}:
        found = ", ".join(f"{count:,} {verdict}" for verdict, count in counts.verdicts.most_common())
        power = f"; {killed:,} of {run:,} mutants killed" if run else ""
        print(f"simllm: proofs: {found}{power}", file=sys.stderr)
