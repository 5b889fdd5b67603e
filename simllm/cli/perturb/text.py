"""`simllm perturb text`: attack prompts and inputs of classifiers."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from simllm.cli.shared_options import CommonOptions, split_names
from simllm.errors import InputError
from simllm.io import output_file, reading, tables
from simllm.io.tables import format_count
from simllm.perturb.text import Attacker, count_variants, count_without_true_class

FORMATS: tuple[str, ...] = ()  # JSON lines, or a text
MODEL = None
EXAMPLES = """examples:
  simllm perturb text items.jsonl --rules charswap,synonym,distractor -o attacked.jsonl
  simllm perturb text items.jsonl --rules charswap+keyboard --share 0.3 --field question -o attacked.jsonl
  simllm perturb text persona.j2 --rules charswap --labels pass,fail -o persona-charswap.j2

rules that change a share of the words:
  charswap    two neighbouring letters are exchanged
  delete      a letter is left out
  insert      a letter is added
  keyboard    a letter becomes one of a neighbouring key
  homoglyph   a letter becomes one of another script that looks alike
  case        a word is written in capitals; a word in capitals, in small letters
  space       a word is split in two
  synonym     a word or short phrase becomes a synonym of the lexicon
rules that add a sentence:
  distractor  says something that has nothing to do with the task
  instruction asks to ignore the text, and for a wrong label of --labels

JSON lines (.jsonl) have items with id and a text. Each is written, and after it a variant for each rule, with
the id of the item under `original`. Any other file is one text, such as the template of a prompt, and has one
rule. Names of code, numbers, --labels, web addresses, text in `backticks`, fenced blocks of code and what a
template fills in ({{ text }}, {name}, <test_case>) stay.
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm perturb text`."""

    file: Path
    rules: str
    field: str = "text"
    share: float = 0.1
    seed: int = 0
    labels: str = ""
    gold: str = "gold"
    variants_only: bool = False


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm perturb text` to its parser."""
    command.add_argument("file", type=Path, metavar="FILE", help="items as JSON lines, or a text")
    command.add_argument(
        "--rules", required=True, metavar="A,B,…", help="the rules, a variant for each; A+B is one variant"
    )
    command.add_argument("--field", metavar="NAME", help="the field with the text; default: %(default)s")
    command.add_argument(
        "--share", type=float, metavar="X", help="share of the words to change; default: %(default)s"
    )
    command.add_argument("--seed", type=int, metavar="N", help="chooses words and letters; default: 0")
    command.add_argument("--labels", metavar="A,B,…", help="labels of the classification, which stay")
    command.add_argument("--gold", metavar="NAME", help="the field with the true class; default: %(default)s")
    command.add_argument(
        "--variants-only",
        action="store_true",
        help="leave out the items themselves, if they were asked before",
    )


def run(options: Options) -> None:
    """Run `simllm perturb text`: write items with their variants, or a changed text."""
    attacker = Attacker(
        split_names(options.rules), options.share, options.seed, split_names(options.labels), options.gold
    )
    output_file.check_output(options.output, options.overwrite, [options.file])
    if not options.file.name.removesuffix(".gz").endswith((".jsonl", ".json")) and str(options.file) != "-":
        _attack_file(attacker, options)
        return
    rows = list(attacker.vary(reading.objects(options.file), options.field))
    if not rows:
        raise InputError(f"{options.file}: empty; expected items")
    shown = [row for row in rows if row["variant"] or not options.variants_only]
    tables.show((json.dumps(row, ensure_ascii=False) + "\n" for row in shown), options.output)
    counts = count_variants(rows)
    if not options.quiet:
        print(f"{'variant':<22}{'items':>7}{'unchanged':>11}", file=sys.stderr)
        for rule in attacker.rules:
            print(f"{rule:<22}{counts[rule]:>7,}{counts[''] - counts[rule]:>11,}", file=sys.stderr)
    unknown = count_without_true_class(rows, attacker.labels, attacker.gold)
    if unknown and any("instruction" in rule.split("+") for rule in attacker.rules):
        warnings.warn(
            f"{format_count(unknown, 'item')} of {counts['']:,} without one of the labels under "
            f'"{attacker.gold}": instruction may ask for the right label',
            stacklevel=2,
        )
    if none := [rule for rule in attacker.rules if not counts[rule]]:
        warnings.warn(f"no text is changed by {', '.join(none)}", stacklevel=2)


def _attack_file(attacker: Attacker, options: Options) -> None:
    if len(attacker.rules) != 1:
        raise InputError(f"{options.file}: a text has one rule, or several joined by +; items are JSON lines")
    text = reading.whole_text(options.file)
    attacked = attacker.attack(text, attacker.rules[0])
    if attacked == text:
        raise InputError(f"{options.file}: no word that {attacker.rules[0]} changes")
    if not attacker.labels:
        warnings.warn("without --labels, words of labels may be changed, too", stacklevel=2)
    if "instruction" in attacker.rules[0].split("+"):
        warnings.warn(
            "instruction asks for one label, whatever the item: it is the right label of some items",
            stacklevel=2,
        )
    tables.show(attacked, options.output)
